// SPDX-License-Identifier: Apache-2.0
// Logic, shifts and bit fields. Source: PTX ISA 9.5, "Logic and Shift Instructions", "Integer
// Arithmetic Instructions" (popc to szext), "prmt".
#include <bit>
#include <type_traits>

#include "tests/ptx/machine/instructions/lanewise.h"

namespace forge::ptx {
namespace {

struct And {
  template <class T>
  static T Do(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T Do(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T Do(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static T Do(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  static T Do(T a) {
    return a == 0 ? 1 : 0;
  }
};
struct Shl {
  template <class T>
  static T Do(T a, uint32_t n) {
    return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << n);
  }
};
struct Shr {
  template <class T>
  static T Do(T a, uint32_t n) {
    constexpr uint32_t bits = 8 * sizeof(T);
    if (n < bits) return static_cast<T>(a >> n);
    return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
  }
};
template <bool kLeft, bool kWrap>
struct Funnel {
  static uint32_t Do(uint32_t a, uint32_t b, uint32_t n) {
    n = kWrap ? n & 31 : (n < 32 ? n : 32);
    const uint64_t both = (uint64_t{b} << 32) | a;
    return kLeft ? static_cast<uint32_t>((both << n) >> 32) : static_cast<uint32_t>(both >> n);
  }
};
struct Popc {
  template <class T>
  static uint32_t Do(T a) {
    return std::popcount(a);
  }
};
struct Clz {
  template <class T>
  static uint32_t Do(T a) {
    return std::countl_zero(a);
  }
};
struct Brev {
  template <class T>
  static T Do(T a) {
    T r = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i)
      r |= static_cast<T>((a >> i) & 1) << (8 * sizeof(T) - 1 - i);
    return r;
  }
};
template <bool kShift>
struct Bfind {
  template <class T>
  static uint32_t Do(T a) {
    using U = std::make_unsigned_t<T>;
    constexpr uint32_t top = 8 * sizeof(T) - 1;
    const U bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (bits == 0) return ~0u;
    const uint32_t at = top - std::countl_zero(bits);
    return kShift ? top - at : at;
  }
};
struct Bfe {
  template <class T>
  static T Do(T a, uint32_t start, uint32_t length) {
    constexpr uint32_t bits = 8 * sizeof(T);
    start &= 0xff, length &= 0xff;
    const uint32_t last = std::min(start + length - 1, bits - 1);
    if (length == 0) return 0;
    const bool sign = std::is_signed_v<T> && (a >> last & 1) != 0;
    std::make_unsigned_t<T> r = 0;
    for (uint32_t i = 0; i < bits; ++i) {
      const bool bit = i < length && start + i < bits ? (a >> (start + i) & 1) != 0 : sign;
      r |= std::make_unsigned_t<T>(bit) << i;
    }
    return static_cast<T>(r);
  }
};
template <class T>
void RunBfi(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  const T* const b = w.In<T>(op.b);
  const uint32_t* const c = w.In<uint32_t>(op.c);
  const uint32_t* const n = w.In<uint32_t>(op.e);
  T r[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t start = c[i] & 0xff, length = n[i] & 0xff;
    T mask = length >= 8 * sizeof(T) ? static_cast<T>(-1) : static_cast<T>((T{1} << length) - 1);
    mask = start >= 8 * sizeof(T) ? T{0} : static_cast<T>(mask << start);
    const T moved = start >= 8 * sizeof(T) ? T{0} : static_cast<T>(a[i] << start);
    r[i] = (b[i] & ~mask) | (moved & mask);
  }
  w.Out(op.d, r, lanes);
}
template <bool kWrap>
struct Bmsk {
  static uint32_t Do(uint32_t a, uint32_t b) {
    if (kWrap) a &= 31, b &= 31;
    const uint32_t low = a > 31 ? 0 : ~uint32_t{0} << a;
    const uint32_t kept = b > 31 ? ~uint32_t{0} : (uint32_t{1} << b) - 1;
    return a > 31 ? 0 : (kept << a) & low;
  }
};

template <class F>
Handler LogicOf(int bytes) {
  if (bytes == 2) return Binary<uint16_t, uint16_t, uint16_t, F>;
  if (bytes == 4) return Binary<uint32_t, uint32_t, uint32_t, F>;
  return bytes == 8 ? Binary<uint64_t, uint64_t, uint64_t, F> : nullptr;
}

template <class F>
Handler NotOf(int bytes) {
  if (bytes == 2) return Unary<uint16_t, uint16_t, F>;
  if (bytes == 4) return Unary<uint32_t, uint32_t, F>;
  return bytes == 8 ? Unary<uint64_t, uint64_t, F> : nullptr;
}

enum PredicateLogic : uint8_t { kLogicAnd, kLogicOr, kLogicXor, kLogicNot };

void RunPredicateLogic(Warp& w, const Op& op, uint32_t lanes) {
  const uint32_t a = w.predicates[op.a], b = w.predicates[op.b];
  uint32_t r = ~a;
  if (op.flags == kLogicAnd) r = a & b;
  if (op.flags == kLogicOr) r = a | b;
  if (op.flags == kLogicXor) r = a ^ b;
  w.OutPredicate(op.d, r, lanes);
}

void DecodePredicateLogic(Decoder& d) {
  const std::string_view name = d.in().opcode;
  Op op;
  op.run = RunPredicateLogic;
  op.flags = name == "and"   ? kLogicAnd
             : name == "or"  ? kLogicOr
             : name == "xor" ? kLogicXor
                             : kLogicNot;
  if (!d.Want(name == "not" ? 2 : 3)) return;
  op.a = d.PredicateSource(d.operand(1));
  op.b = name == "not" ? op.a : d.PredicateSource(d.operand(2));
  op.d = d.PredicateDestination(d.operand(0));
  d.Emit(op);
}

void RunLop3(Warp& w, const Op& op, uint32_t lanes) {
  const uint32_t* const a = w.In<uint32_t>(op.a);
  const uint32_t* const b = w.In<uint32_t>(op.b);
  const uint32_t* const c = w.In<uint32_t>(op.c);
  uint32_t r[kLanes] = {};
  for (int k = 0; k < 8; ++k) {
    if ((op.offset >> k & 1) == 0) continue;
    const uint32_t x = (k & 4) != 0 ? 0 : ~0u, y = (k & 2) != 0 ? 0 : ~0u,
                   z = (k & 1) != 0 ? 0 : ~0u;
    for (int i = 0; i < kLanes; ++i) r[i] |= (a[i] ^ x) & (b[i] ^ y) & (c[i] ^ z);
  }
  w.Out(op.d, r, lanes);
}

void DecodeLop3(Decoder& d) {
  d.Take("b32");
  if (!d.Want(5)) return;
  Op op;
  op.run = RunLop3;
  op.d = d.Destination(0, 4);
  op.a = d.Source(1, 4);
  op.b = d.Source(2, 4);
  op.c = d.Source(3, 4);
  op.offset = static_cast<int64_t>(d.operand(4).bits);
  if (d.operand(4).kind != Operand::Kind::kInteger || op.offset > 255)
    return d.Fail("the table of lop3");
  d.Emit(op);
}

// prmt: each of four bytes of the result is one of the eight of a and b.
void RunPrmt(Warp& w, const Op& op, uint32_t lanes) {
  const uint32_t* const a = w.In<uint32_t>(op.a);
  const uint32_t* const b = w.In<uint32_t>(op.b);
  const uint32_t* const c = w.In<uint32_t>(op.c);
  static constexpr uint8_t kModes[6][4][4] = {
      {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}},  // f4e
      {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}},  // b4e
      {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}},  // rc8
      {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}},  // ecl
      {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}},  // ecr
      {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}},  // rc16
  };
  uint32_t r[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t both = (uint64_t{b[i]} << 32) | a[i];
    for (int k = 0; k < 4; ++k) {
      const uint32_t control = c[i] >> (4 * k) & 15;
      const uint32_t from = op.flags == 0 ? control & 7 : kModes[op.flags - 1][c[i] & 3][k];
      uint32_t byte = static_cast<uint32_t>(both >> (8 * from)) & 0xff;
      if (op.flags == 0 && (control & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      r[i] |= byte << (8 * k);
    }
  }
  w.Out(op.d, r, lanes);
}

Handler BfindOf(Type t, bool shift) {
  switch (t) {
    case Type::kU32:
      return shift ? Unary<uint32_t, uint32_t, Bfind<true>>
                   : Unary<uint32_t, uint32_t, Bfind<false>>;
    case Type::kS32:
      return shift ? Unary<uint32_t, int32_t, Bfind<true>> : Unary<uint32_t, int32_t, Bfind<false>>;
    case Type::kU64:
      return shift ? Unary<uint32_t, uint64_t, Bfind<true>>
                   : Unary<uint32_t, uint64_t, Bfind<false>>;
    case Type::kS64:
      return shift ? Unary<uint32_t, int64_t, Bfind<true>> : Unary<uint32_t, int64_t, Bfind<false>>;
    default:
      return nullptr;
  }
}

Handler BfeOf(Type t) {
  switch (t) {
    case Type::kU32:
      return Ternary<uint32_t, uint32_t, uint32_t, uint32_t, Bfe>;
    case Type::kS32:
      return Ternary<int32_t, int32_t, uint32_t, uint32_t, Bfe>;
    case Type::kU64:
      return Ternary<uint64_t, uint64_t, uint32_t, uint32_t, Bfe>;
    case Type::kS64:
      return Ternary<int64_t, int64_t, uint32_t, uint32_t, Bfe>;
    default:
      return nullptr;
  }
}

void DecodeBfi(Decoder& d, int bytes) {
  if (!d.Want(5)) return;
  Op op;
  op.run = bytes == 4 ? RunBfi<uint32_t> : bytes == 8 ? RunBfi<uint64_t> : nullptr;
  if (op.run == nullptr) return d.Fail("this type is not supported");
  op.d = d.Destination(0, bytes);
  op.a = d.Source(1, bytes);
  op.b = d.Source(2, bytes);
  op.c = d.Source(3, 4);
  op.e = d.Source(4, 4);
  d.Emit(op);
}

void DecodePrmt(Decoder& d) {
  d.Take("b32");
  const int mode = d.TakeOneOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  EmitLanewise(d, RunPrmt, 4, {4, 4, 4});
  if (!d.failed()) d.program().ops.back().flags = static_cast<uint8_t>(mode + 1);
}

}  // namespace

void DecodeLogic(Decoder& d) {
  const std::string_view name = d.in().opcode;
  if (name == "lop3") return DecodeLop3(d);
  const Type t = d.TakeType();
  if (t == Type::kPred) return DecodePredicateLogic(d);
  const int bytes = Bytes(t);
  if (!IsBits(t)) return d.Fail("this type is not supported");
  if (name == "not") return EmitLanewise(d, NotOf<Not>(bytes), bytes, {bytes});
  if (name == "cnot") return EmitLanewise(d, NotOf<Cnot>(bytes), bytes, {bytes});
  const Handler run = name == "and"  ? LogicOf<And>(bytes)
                      : name == "or" ? LogicOf<Or>(bytes)
                                     : LogicOf<Xor>(bytes);
  EmitLanewise(d, run, bytes, {bytes, bytes});
}

void DecodeShift(Decoder& d) {
  const std::string_view name = d.in().opcode;
  if (name == "shf") {
    const int left = d.TakeOneOf({"r", "l"}), wrap = d.TakeOneOf({"clamp", "wrap"});
    d.Take("b32");
    const Handler run =
        left > 0
            ? (wrap > 0 ? Ternary<uint32_t, uint32_t, uint32_t, uint32_t, Funnel<true, true>>
                        : Ternary<uint32_t, uint32_t, uint32_t, uint32_t, Funnel<true, false>>)
            : (wrap > 0 ? Ternary<uint32_t, uint32_t, uint32_t, uint32_t, Funnel<false, true>>
                        : Ternary<uint32_t, uint32_t, uint32_t, uint32_t, Funnel<false, false>>);
    return EmitLanewise(d, left < 0 || wrap < 0 ? nullptr : run, 4, {4, 4, 4});
  }
  const Type t = d.TakeType();
  const int bytes = Bytes(t);
  Handler run = nullptr;
  if (name == "shl") {
    run = bytes == 2   ? Binary<uint16_t, uint16_t, uint32_t, Shl>
          : bytes == 4 ? Binary<uint32_t, uint32_t, uint32_t, Shl>
                       : Binary<uint64_t, uint64_t, uint32_t, Shl>;
  } else if (IsSigned(t)) {
    run = bytes == 2   ? Binary<int16_t, int16_t, uint32_t, Shr>
          : bytes == 4 ? Binary<int32_t, int32_t, uint32_t, Shr>
                       : Binary<int64_t, int64_t, uint32_t, Shr>;
  } else {
    run = bytes == 2   ? Binary<uint16_t, uint16_t, uint32_t, Shr>
          : bytes == 4 ? Binary<uint32_t, uint32_t, uint32_t, Shr>
                       : Binary<uint64_t, uint64_t, uint32_t, Shr>;
  }
  if (bytes < 2 || bytes > 8) run = nullptr;
  EmitLanewise(d, run, bytes, {bytes, 4});
}

void DecodeBits(Decoder& d) {
  const std::string_view name = d.in().opcode;
  if (name == "prmt") return DecodePrmt(d);
  if (name == "szext") return d.Fail("the opcode szext is unknown");
  const int wrap = name == "bmsk" ? d.TakeOneOf({"clamp", "wrap"}) : 0;
  const bool shift = d.Take("shiftamt");
  const Type t = d.TakeType();
  const int bytes = Bytes(t);
  if (bytes != 4 && bytes != 8) return d.Fail("this type is not supported");
  const bool wide = bytes == 8;
  if (name == "bfi") return DecodeBfi(d, bytes);
  if (name == "bfe") return EmitLanewise(d, BfeOf(t), bytes, {bytes, 4, 4});
  if (name == "bfind") return EmitLanewise(d, BfindOf(t, shift), 4, {bytes});
  if (name == "popc")
    return EmitLanewise(d, wide ? Unary<uint32_t, uint64_t, Popc> : Unary<uint32_t, uint32_t, Popc>,
                        4, {bytes});
  if (name == "clz")
    return EmitLanewise(d, wide ? Unary<uint32_t, uint64_t, Clz> : Unary<uint32_t, uint32_t, Clz>,
                        4, {bytes});
  if (name == "brev") return EmitLanewise(d, NotOf<Brev>(bytes), bytes, {bytes});
  EmitLanewise(d,
               wrap > 0 ? Binary<uint32_t, uint32_t, uint32_t, Bmsk<true>>
                        : Binary<uint32_t, uint32_t, uint32_t, Bmsk<false>>,
               4, {4, 4});
}

}  // namespace forge::ptx
