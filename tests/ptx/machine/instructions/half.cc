// SPDX-License-Identifier: Apache-2.0
// f16, bf16 and pairs of them. Source: PTX ISA 9.5, "Half Precision Floating-Point Instructions".
#include <limits>

#include "tests/ptx/machine/instructions/lanewise.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

// Sums and products of f16 are exact in f32 or rounded to odd bits that f32 has to spare; those of
// bf16 too. Only fma needs an exact sum before its one rounding.
struct HalfAdd {
  static float Do(float a, float b) { return ToOddFloat(AddToOdd(a, b)); }
};
struct HalfSub {
  static float Do(float a, float b) { return ToOddFloat(AddToOdd(a, -b)); }
};
struct HalfMul {
  static float Do(float a, float b) { return ToOddFloat(static_cast<double>(a) * b); }
};
struct HalfFma {
  static float Do(float a, float b, float c) {
    return ToOddFloat(AddToOdd(static_cast<double>(a) * b, c));
  }
};
template <bool kMax, bool kNan>
struct HalfMinMax {
  static float Do(float a, float b) {
    if (a != a || b != b) {
      if (kNan || (a != a && b != b)) return std::numeric_limits<float>::quiet_NaN();
      return a != a ? b : a;
    }
    if (a == b) return std::signbit(a) == kMax ? b : a;
    return (a < b) == kMax ? b : a;
  }
};

constexpr uint8_t kHalfSat = 1, kHalfRelu = 2, kHalfFtz = 4;  // Op::flags

template <class N>
float FlushNarrow(float v) {
  return std::fabs(v) < (std::is_same_v<N, F16> ? 0x1p-14f : 0x1p-126f) ? std::copysign(0.0f, v)
                                                                        : v;
}

template <class N>
uint16_t Finish(float r, uint8_t flags) {
  if ((flags & kHalfSat) != 0) r = r > 0 ? (r < 1 ? r : 1.0f) : 0.0f;
  if ((flags & kHalfRelu) != 0) r = r < 0 ? 0.0f : r;
  uint16_t bits = N::Encode(r);
  if ((flags & kHalfFtz) != 0) bits = N::Encode(FlushNarrow<N>(N::Decode(bits)));
  return bits;
}

template <class N, class F, bool kPacked>
void RunHalf(Warp& w, const Op& op, uint32_t lanes) {
  constexpr int n = (kPacked ? 2 : 1) * kLanes;
  const uint16_t* const a = w.In<uint16_t>(op.a);
  const uint16_t* const b = w.In<uint16_t>(op.b);
  const uint16_t* const c = w.In<uint16_t>(op.c);
  const bool ftz = (op.flags & kHalfFtz) != 0;
  alignas(4) uint16_t r[n];
  for (int i = 0; i < n; ++i) {
    float x = N::Decode(a[i]), y = N::Decode(b[i]), z = N::Decode(c[i]);
    if (ftz) x = FlushNarrow<N>(x), y = FlushNarrow<N>(y), z = FlushNarrow<N>(z);
    if constexpr (requires { F::Do(x, y, z); })
      r[i] = Finish<N>(F::Do(x, y, z), op.flags);
    else
      r[i] = Finish<N>(F::Do(x, y), op.flags);
  }
  if (kPacked)
    w.Out(op.d, reinterpret_cast<const uint32_t*>(r), lanes);
  else
    w.Out(op.d, r, lanes);
}

// abs and neg change the sign bits only.
template <class T>
void RunHalfSign(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  const T signs = static_cast<T>(0x80008000u);
  T r[kLanes];
  for (int i = 0; i < kLanes; ++i)
    r[i] = op.count != 0 ? static_cast<T>(a[i] ^ signs) : static_cast<T>(a[i] & ~signs);
  w.Out(op.d, r, lanes);
}

template <class F>
Handler HalfOf(Type t) {
  switch (t) {
    case Type::kF16:
      return RunHalf<F16, F, false>;
    case Type::kF16x2:
      return RunHalf<F16, F, true>;
    case Type::kBf16:
      return RunHalf<Bf16, F, false>;
    case Type::kBf16x2:
      return RunHalf<Bf16, F, true>;
    default:
      return nullptr;
  }
}

Handler HalfHandler(std::string_view name, Type t, bool nan) {
  if (name == "add") return HalfOf<HalfAdd>(t);
  if (name == "sub") return HalfOf<HalfSub>(t);
  if (name == "mul") return HalfOf<HalfMul>(t);
  if (name == "fma") return HalfOf<HalfFma>(t);
  if (name == "min")
    return nan ? HalfOf<HalfMinMax<false, true>>(t) : HalfOf<HalfMinMax<false, false>>(t);
  if (name == "max")
    return nan ? HalfOf<HalfMinMax<true, true>>(t) : HalfOf<HalfMinMax<true, false>>(t);
  return nullptr;
}

}  // namespace

void DecodeHalf(Decoder& d) {
  const std::string_view name = d.in().opcode;
  Op op;
  op.kind = Kind::kFloat;
  d.Take("rn");
  if (d.Take("ftz")) op.flags |= kHalfFtz;
  if (d.Take("sat")) op.flags |= kHalfSat;
  if (d.Take("relu")) op.flags |= kHalfRelu;
  const bool nan = d.Take("NaN");
  const Type t = d.TakeType();
  const int bytes = Bytes(t);
  const bool sign = name == "abs" || name == "neg";
  const size_t sources = sign ? 1 : name == "fma" ? 3 : 2;
  op.run = sign ? (bytes == 4 ? RunHalfSign<uint32_t> : RunHalfSign<uint16_t>)
                : HalfHandler(name, t, nan);
  if (op.run == nullptr ||
      (t != Type::kF16 && t != Type::kF16x2 && t != Type::kBf16 && t != Type::kBf16x2) ||
      !d.Want(1 + sources))
    return d.Fail("this form is not supported");
  op.count = name == "neg" ? 1 : 0;
  op.d = d.Destination(0, bytes);
  op.a = op.b = op.c = d.Source(1, bytes);
  if (sources > 1) op.b = d.Source(2, bytes);
  if (sources > 2) op.c = d.Source(3, bytes);
  d.Emit(op);
}

}  // namespace forge::ptx
