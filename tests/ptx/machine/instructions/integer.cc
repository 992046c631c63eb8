// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic. Source: PTX ISA 9.5, "Integer Arithmetic Instructions".
#include <limits>
#include <type_traits>

#include "tests/ptx/machine/instructions/lanewise.h"

namespace forge::ptx {
namespace {

template <class T>
using Wide = std::conditional_t<
    std::is_signed_v<T>,
    std::conditional_t<sizeof(T) == 2, int32_t,
                       std::conditional_t<sizeof(T) == 4, int64_t, __int128>>,
    std::conditional_t<sizeof(T) == 2, uint32_t,
                       std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>>>;
// Wraps without overflow of signed integers.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 2, uint32_t, std::make_unsigned_t<T>>;

struct Add {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>(Bits<T>(a) + Bits<T>(b));
  }
};
struct Sub {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>(Bits<T>(a) - Bits<T>(b));
  }
};
template <class T>
T Saturated(Wide<T> v) {
  if (v < std::numeric_limits<T>::min()) return std::numeric_limits<T>::min();
  return v > std::numeric_limits<T>::max() ? std::numeric_limits<T>::max() : static_cast<T>(v);
}
struct AddSat {
  template <class T>
  static T Do(T a, T b) {
    return Saturated<T>(Wide<T>(a) + b);
  }
};
struct SubSat {
  template <class T>
  static T Do(T a, T b) {
    return Saturated<T>(Wide<T>(a) - b);
  }
};
struct MulLo {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>(Bits<T>(a) * Bits<T>(b));
  }
};
struct MulHi {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T)));
  }
};
struct MulWide {
  template <class T>
  static Wide<T> Do(T a, T b) {
    return Wide<T>(a) * Wide<T>(b);
  }
};
struct MadLo {
  template <class T>
  static T Do(T a, T b, T c) {
    return Add::Do(MulLo::Do(a, b), c);
  }
};
struct MadHi {
  template <class T>
  static T Do(T a, T b, T c) {
    return Add::Do(MulHi::Do(a, b), c);
  }
};
struct MadHiSat {
  template <class T>
  static T Do(T a, T b, T c) {
    return AddSat::Do(MulHi::Do(a, b), c);
  }
};
struct MadWide {
  template <class T>
  static Wide<T> Do(T a, T b, Wide<T> c) {
    return Add::Do(Wide<T>(a) * Wide<T>(b), c);
  }
};
struct Div {  // A division by zero gives all ones, as devices do; PTX leaves it open.
  template <class T>
  static T Do(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - Bits<T>(a));
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static T Do(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  static T Do(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static T Do(T a, T b) {
    return a > b ? a : b;
  }
};
struct MinRelu {
  template <class T>
  static T Do(T a, T b) {
    return Max::Do(Min::Do(a, b), T{0});
  }
};
struct MaxRelu {
  template <class T>
  static T Do(T a, T b) {
    return Max::Do(Max::Do(a, b), T{0});
  }
};
struct Abs {
  template <class T>
  static T Do(T a) {
    return static_cast<T>(a < 0 ? 0 - Bits<T>(a) : Bits<T>(a));
  }
};
struct Neg {
  template <class T>
  static T Do(T a) {
    return static_cast<T>(0 - Bits<T>(a));
  }
};
struct Sad {
  template <class T>
  static T Do(T a, T b, T c) {
    return static_cast<T>(Bits<T>(c) + (a < b ? Bits<T>(b) - Bits<T>(a) : Bits<T>(a) - Bits<T>(b)));
  }
};
struct Mul24Lo {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>(MulWide::Do(Cut(a), Cut(b)));
  }
  template <class T>
  static T Cut(T a) {
    return static_cast<T>(static_cast<T>(Bits<T>(a) << 8) >> 8);
  }
};
struct Mad24Lo {
  template <class T>
  static T Do(T a, T b, T c) {
    return Add::Do(Mul24Lo::Do(a, b), c);
  }
};

template <class F>
Handler UnaryOf(Type t) {
  switch (t) {
    case Type::kS16:
      return Unary<int16_t, int16_t, F>;
    case Type::kS32:
      return Unary<int32_t, int32_t, F>;
    case Type::kS64:
      return Unary<int64_t, int64_t, F>;
    default:
      return nullptr;
  }
}

template <class F>
Handler BinaryOf(Type t) {
  switch (t) {
    case Type::kU16:
      return Binary<uint16_t, uint16_t, uint16_t, F>;
    case Type::kU32:
      return Binary<uint32_t, uint32_t, uint32_t, F>;
    case Type::kU64:
      return Binary<uint64_t, uint64_t, uint64_t, F>;
    case Type::kS16:
      return Binary<int16_t, int16_t, int16_t, F>;
    case Type::kS32:
      return Binary<int32_t, int32_t, int32_t, F>;
    case Type::kS64:
      return Binary<int64_t, int64_t, int64_t, F>;
    default:
      return nullptr;
  }
}

template <class F>
Handler TernaryOf(Type t) {
  switch (t) {
    case Type::kU16:
      return Ternary<uint16_t, uint16_t, uint16_t, uint16_t, F>;
    case Type::kU32:
      return Ternary<uint32_t, uint32_t, uint32_t, uint32_t, F>;
    case Type::kU64:
      return Ternary<uint64_t, uint64_t, uint64_t, uint64_t, F>;
    case Type::kS16:
      return Ternary<int16_t, int16_t, int16_t, int16_t, F>;
    case Type::kS32:
      return Ternary<int32_t, int32_t, int32_t, int32_t, F>;
    case Type::kS64:
      return Ternary<int64_t, int64_t, int64_t, int64_t, F>;
    default:
      return nullptr;
  }
}

Handler WideMul(Type t) {
  switch (t) {
    case Type::kU16:
      return Binary<uint32_t, uint16_t, uint16_t, MulWide>;
    case Type::kU32:
      return Binary<uint64_t, uint32_t, uint32_t, MulWide>;
    case Type::kS16:
      return Binary<int32_t, int16_t, int16_t, MulWide>;
    case Type::kS32:
      return Binary<int64_t, int32_t, int32_t, MulWide>;
    default:
      return nullptr;
  }
}

Handler WideMad(Type t) {
  switch (t) {
    case Type::kU16:
      return Ternary<uint32_t, uint16_t, uint16_t, uint32_t, MadWide>;
    case Type::kU32:
      return Ternary<uint64_t, uint32_t, uint32_t, uint64_t, MadWide>;
    case Type::kS16:
      return Ternary<int32_t, int16_t, int16_t, int32_t, MadWide>;
    case Type::kS32:
      return Ternary<int64_t, int32_t, int32_t, int64_t, MadWide>;
    default:
      return nullptr;
  }
}

// add and sub of packed 16-bit integers.
template <class T, class F>
void BinaryPacked(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  const T* const b = w.In<T>(op.b);
  alignas(4) T r[2 * kLanes];
  for (int i = 0; i < 2 * kLanes; ++i) r[i] = F::Do(a[i], b[i]);
  w.Out(op.d, reinterpret_cast<const uint32_t*>(r), lanes);
}

template <class F>
Handler PackedOf(Type t) {
  return t == Type::kS16x2 ? BinaryPacked<int16_t, F> : BinaryPacked<uint16_t, F>;
}

void DecodeProduct(Decoder& d, bool mad) {
  const bool is24 = d.in().opcode.ends_with("24");
  const int part = d.TakeOneOf({"lo", "hi", "wide"});
  const bool sat = d.Take("sat");
  const Type t = d.TakeType();
  const int bytes = Bytes(t), wide = part == 2 ? 2 * bytes : bytes;
  if (part < 0 || (is24 && (part != 0 || bytes != 4)) || (sat && (part != 1 || t != Type::kS32)))
    return d.Fail("this form is not supported");
  if (mad) {
    Handler run = part == 0 ? TernaryOf<MadLo>(t) : part == 1 ? TernaryOf<MadHi>(t) : WideMad(t);
    if (sat) run = TernaryOf<MadHiSat>(t);
    if (is24)
      run = t == Type::kU32 ? Ternary<uint32_t, uint32_t, uint32_t, uint32_t, Mad24Lo>
                            : Ternary<int32_t, int32_t, int32_t, int32_t, Mad24Lo>;
    return EmitLanewise(d, run, wide, {bytes, bytes, wide});
  }
  Handler run = part == 0 ? BinaryOf<MulLo>(t) : part == 1 ? BinaryOf<MulHi>(t) : WideMul(t);
  if (is24)
    run = t == Type::kU32 ? Binary<uint32_t, uint32_t, uint32_t, Mul24Lo>
                          : Binary<int32_t, int32_t, int32_t, Mul24Lo>;
  EmitLanewise(d, run, wide, {bytes, bytes});
}

Handler MinMax(Type t, bool max, bool relu) {
  if (t == Type::kS16x2 || t == Type::kU16x2) {
    if (relu && t == Type::kU16x2) return nullptr;
    if (relu) return max ? PackedOf<MaxRelu>(t) : PackedOf<MinRelu>(t);
    return max ? PackedOf<Max>(t) : PackedOf<Min>(t);
  }
  if (relu && t != Type::kS32) return nullptr;
  if (relu) return max ? BinaryOf<MaxRelu>(t) : BinaryOf<MinRelu>(t);
  return max ? BinaryOf<Max>(t) : BinaryOf<Min>(t);
}

}  // namespace

void DecodeInteger(Decoder& d) {
  const std::string_view name = d.in().opcode;
  if (name == "mul" || name == "mul24") return DecodeProduct(d, false);
  if (name == "mad" || name == "mad24") return DecodeProduct(d, true);
  const bool sat = d.Take("sat"), relu = d.Take("relu");
  const Type t = d.TakeType();
  const int bytes = Bytes(t);
  if (sat && t != Type::kS32) return d.Fail("only .s32 saturates");
  if (name == "abs" || name == "neg")
    return EmitLanewise(d, name == "abs" ? UnaryOf<Abs>(t) : UnaryOf<Neg>(t), bytes, {bytes});
  if (name == "sad") return EmitLanewise(d, TernaryOf<Sad>(t), bytes, {bytes, bytes, bytes});
  Handler run = nullptr;
  const bool packed = t == Type::kS16x2 || t == Type::kU16x2;
  if (name == "add") run = packed ? PackedOf<Add>(t) : sat ? BinaryOf<AddSat>(t) : BinaryOf<Add>(t);
  if (name == "sub") run = packed ? PackedOf<Sub>(t) : sat ? BinaryOf<SubSat>(t) : BinaryOf<Sub>(t);
  if (name == "div") run = BinaryOf<Div>(t);
  if (name == "rem") run = BinaryOf<Rem>(t);
  if (name == "min" || name == "max") run = MinMax(t, name == "max", relu);
  EmitLanewise(d, run, bytes, {bytes, bytes});
}

}  // namespace forge::ptx
