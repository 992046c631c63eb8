// SPDX-License-Identifier: Apache-2.0
// Sums with carry, and dot products of bytes. Source: PTX ISA 9.5, "Extended-Precision Integer
// Arithmetic Instructions", "dp4a", "dp2a".
#include "tests/ptx/machine/instructions/lanewise.h"

namespace forge::ptx {
namespace {

// Op::flags: what to read of and write to the carry, and which part of a product is meant.
constexpr uint8_t kReadsCarry = 1, kWritesCarry = 2, kSubtracts = 4, kHigh = 8, kProduct = 16;

template <class T>
void RunCarry(Warp& w, const Op& op, uint32_t lanes) {
  using U = std::make_unsigned_t<T>;
  using W =
      std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                         std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>;
  const T* const a = w.In<T>(op.a);
  const T* const b = w.In<T>(op.b);
  const T* const c = w.In<T>(op.c);
  const uint16_t* const flags = w.Register<uint16_t>(op.e);
  T r[kLanes];
  uint16_t carried[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    U x = static_cast<U>(a[i]), y = static_cast<U>(b[i]);
    if ((op.flags & kProduct) != 0) {
      const W product = W(a[i]) * W(b[i]);
      x = static_cast<U>((op.flags & kHigh) != 0 ? product >> (8 * sizeof(T)) : product);
      y = static_cast<U>(c[i]);
    }
    const U in = (op.flags & kReadsCarry) != 0 ? flags[i] : 0;
    if ((op.flags & kSubtracts) != 0) {
      r[i] = static_cast<T>(x - y - in);
      carried[i] = x < y || (x == y && in != 0);
    } else {
      const U sum = x + y;
      r[i] = static_cast<T>(sum + in);
      carried[i] = sum < x || static_cast<U>(sum + in) < sum;
    }
  }
  w.Out(op.d, r, lanes);
  if ((op.flags & kWritesCarry) != 0) w.Out(op.e, carried, lanes);
}

template <class A, class B, int kBytes>
void RunDot(Warp& w, const Op& op, uint32_t lanes) {
  const uint32_t* const a = w.In<uint32_t>(op.a);
  const uint32_t* const b = w.In<uint32_t>(op.b);
  const uint32_t* const c = w.In<uint32_t>(op.c);
  uint32_t r[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    r[i] = c[i];
    for (int k = 0; k < kBytes; ++k) {
      const int shift_b = 8 * (k + (op.flags != 0 ? 2 : 0));
      const auto x = kBytes == 4 ? static_cast<int32_t>(static_cast<A>(a[i] >> (8 * k)))
                     : std::is_signed_v<A>
                         ? static_cast<int32_t>(static_cast<int16_t>(a[i] >> (16 * k)))
                         : static_cast<int32_t>(static_cast<uint16_t>(a[i] >> (16 * k)));
      r[i] += static_cast<uint32_t>(x * static_cast<int32_t>(static_cast<B>(b[i] >> shift_b)));
    }
  }
  w.Out(op.d, r, lanes);
}

template <int kBytes>
Handler DotOf(Type a, Type b) {
  if (a == Type::kS32)
    return b == Type::kS32 ? RunDot<int8_t, int8_t, kBytes> : RunDot<int8_t, uint8_t, kBytes>;
  return b == Type::kS32 ? RunDot<uint8_t, int8_t, kBytes> : RunDot<uint8_t, uint8_t, kBytes>;
}

}  // namespace

void DecodeDotProduct(Decoder& d) {
  const bool four = d.in().opcode == "dp4a";
  const int half = four ? 0 : d.TakeOneOf({"lo", "hi"});
  const Type a = d.TakeType(), b = d.TakeType();
  const auto known = [](Type t) { return t == Type::kS32 || t == Type::kU32; };
  if (half < 0 || !known(a) || !known(b)) return d.Fail("this form is not supported");
  EmitLanewise(d, four ? DotOf<4>(a, b) : DotOf<2>(a, b), 4, {4, 4, 4});
  if (!d.failed()) d.program().ops.back().flags = static_cast<uint8_t>(half);
}

void DecodeCarry(Decoder& d) {
  const std::string_view name = d.in().opcode;
  Op op;
  if (name.ends_with('c')) op.flags |= kReadsCarry;
  if (name.starts_with("sub")) op.flags |= kSubtracts;
  if (name.starts_with("mad")) op.flags |= kProduct;
  if (d.TakeOneOf({"lo", "hi"}) == 1) op.flags |= kHigh;
  if (d.Take("cc")) op.flags |= kWritesCarry;
  const Type t = d.TakeType();
  const int bytes = Bytes(t);
  const size_t sources = (op.flags & kProduct) != 0 ? 3 : 2;
  if (!IsInteger(t) || (bytes != 4 && bytes != 8) || !d.Want(1 + sources))
    return d.Fail("this form is not supported");
  if (t == Type::kU32) op.run = RunCarry<uint32_t>;
  if (t == Type::kS32) op.run = RunCarry<int32_t>;
  if (t == Type::kU64) op.run = RunCarry<uint64_t>;
  if (t == Type::kS64) op.run = RunCarry<int64_t>;
  op.d = d.Destination(0, bytes);
  op.a = d.Source(1, bytes);
  op.b = op.c = d.Source(2, bytes);
  if (sources == 3) op.c = d.Source(3, bytes);
  op.e = d.CarryFlags();
  d.Emit(op);
}

}  // namespace forge::ptx
