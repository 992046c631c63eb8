// SPDX-License-Identifier: Apache-2.0
// cvt. A value goes through a 64-bit integer or an f64, which hold every source exactly, and is
// rounded once. Source: PTX ISA 9.5, "cvt".
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ptx/machine/instructions/float8.h"
#include "tests/ptx/machine/instructions/lanewise.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

// What a conversion does, packed into Op::offset.
struct Plan {
  uint8_t to, from;              // Type
  uint8_t to_bytes, from_bytes;  // of the registers
  uint8_t rounding;              // Rounding
  uint8_t flags;
  uint8_t unused[2];
};
static_assert(sizeof(Plan) == sizeof(int64_t));
constexpr uint8_t kFtz = 1, kSat = 2, kRelu = 4, kToIntegral = 8, kSatFinite = 16;

bool IsFloat(Type t) {
  return t == Type::kF16 || t == Type::kBf16 || t == Type::kF32 || t == Type::kF64 ||
         t == Type::kTf32;
}

uint64_t ReadRegister(const Warp& w, int32_t at, int bytes, int lane) {
  if (bytes == 2) return w.In<uint16_t>(at)[lane];
  return bytes == 4 ? w.In<uint32_t>(at)[lane] : w.In<uint64_t>(at)[lane];
}

void WriteRegister(Warp& w, int32_t at, int bytes, int lane, uint64_t v) {
  if (bytes == 2)
    w.Register<uint16_t>(at)[lane] = static_cast<uint16_t>(v);
  else if (bytes == 4)
    w.Register<uint32_t>(at)[lane] = static_cast<uint32_t>(v);
  else
    w.Register<uint64_t>(at)[lane] = v;
}

// Extended to 64 bits by the type's sign.
uint64_t Extend(uint64_t v, Type t) {
  const int bits = 8 * Bytes(t);
  if (bits == 64) return v;
  v &= (uint64_t{1} << bits) - 1;
  if (IsSigned(t) && (v >> (bits - 1)) != 0) v |= ~uint64_t{0} << bits;
  return v;
}

double FloatValue(uint64_t v, Type t, bool ftz) {
  switch (t) {
    case Type::kF16:
      return F16::Decode(static_cast<uint16_t>(v));
    case Type::kBf16:
      return Bf16::Decode(static_cast<uint16_t>(v));
    case Type::kF64:
      return std::bit_cast<double>(v);
    default: {
      const float f = std::bit_cast<float>(static_cast<uint32_t>(v));
      return ftz ? Flush(f) : f;
    }
  }
}

__int128 Least(Type t) { return IsSigned(t) ? -(__int128{1} << (8 * Bytes(t) - 1)) : 0; }
__int128 Most(Type t) { return (__int128{1} << (8 * Bytes(t) - (IsSigned(t) ? 1 : 0))) - 1; }

uint64_t IntegerToInteger(uint64_t v, const Plan& p) {
  const Type to = static_cast<Type>(p.to), from = static_cast<Type>(p.from);
  if ((p.flags & kSat) == 0) return Extend(v, to);
  const __int128 value =
      IsSigned(from) ? static_cast<__int128>(static_cast<int64_t>(v)) : static_cast<__int128>(v);
  return static_cast<uint64_t>(std::clamp(value, Least(to), Most(to)));
}

double RoundIntegral(double v, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(v);
    case Rounding::kZero:
      return std::trunc(v);
    case Rounding::kDown:
      return std::floor(v);
    default:
      return std::ceil(v);
  }
}

// Out of range gives the nearest integer of the type; NaN gives 0, of 64-bit types 2^63.
uint64_t FloatToInteger(double v, const Plan& p) {
  const Type to = static_cast<Type>(p.to);
  if (v != v) return Bytes(to) == 8 ? uint64_t{1} << 63 : 0;
  const double r = RoundIntegral(v, static_cast<Rounding>(p.rounding));
  if (r <= static_cast<double>(Least(to))) return static_cast<uint64_t>(Least(to));
  if (r >= static_cast<double>(Most(to))) return static_cast<uint64_t>(Most(to));
  return IsSigned(to) ? static_cast<uint64_t>(static_cast<int64_t>(r)) : static_cast<uint64_t>(r);
}

const Format& FormatOf(Type t) {
  switch (t) {
    case Type::kF16:
    case Type::kF16x2:
      return kF16Format;
    case Type::kBf16:
    case Type::kBf16x2:
      return kBf16Format;
    case Type::kTf32:
      return kTf32Format;
    case Type::kE4m3x2:
      return kE4m3Format;
    case Type::kE5m2x2:
      return kE5m2Format;
    default:
      return kF32Format;
  }
}

// The bits of v in a format, rounded once.
uint64_t EncodeFloat(double v, Type to, const Plan& p) {
  const auto rounding = static_cast<Rounding>(p.rounding);
  if ((p.flags & kRelu) != 0 && v < 0) v = 0;
  if ((p.flags & kSat) != 0) v = v > 0 ? std::min(v, 1.0) : 0;
  if (to == Type::kF64) return std::bit_cast<uint64_t>(v);
  if (rounding == Rounding::kNearest && to == Type::kF32) {
    const float f = static_cast<float>(v);
    return std::bit_cast<uint32_t>(Canonical((p.flags & kFtz) != 0 ? Flush(f) : f));
  }
  double r = RoundTo(FormatOf(to), v, rounding);
  if ((p.flags & kSatFinite) != 0 && r == r)
    r = std::clamp(r, -FormatOf(to).largest, FormatOf(to).largest);
  const float f = static_cast<float>(r);
  switch (to) {
    case Type::kF16:
    case Type::kF16x2:
      return F16::Encode(f);
    case Type::kBf16:
    case Type::kBf16x2:
      return Bf16::Encode(f);
    case Type::kE4m3x2:
      return EncodeE4m3(r);
    case Type::kE5m2x2:
      return EncodeE5m2(r);
    default:
      return std::bit_cast<uint32_t>(Canonical((p.flags & kFtz) != 0 ? Flush(f) : f));
  }
}

// An integer as f64, rounded as asked for, to 24 bits at most `precision`; f64 holds 53.
double IntegerAsDouble(uint64_t v, const Plan& p) {
  const bool is_signed = IsSigned(static_cast<Type>(p.from));
  const __int128 exact =
      is_signed ? static_cast<__int128>(static_cast<int64_t>(v)) : static_cast<__int128>(v);
  const double d =
      is_signed ? static_cast<double>(static_cast<int64_t>(v)) : static_cast<double>(v);
  const __int128 back = static_cast<__int128>(d);
  if (back == exact) return d;
  const auto rounding = static_cast<Rounding>(p.rounding);
  const bool to_double = static_cast<Type>(p.to) == Type::kF64;
  if (to_double && rounding == Rounding::kNearest) return d;
  // Towards zero; then odd for a second rounding, or up and down as asked for.
  const double zero = (back > exact) == (exact > 0) ? std::nextafter(d, 0.0) : d;
  if (!to_double) return std::bit_cast<double>(std::bit_cast<uint64_t>(zero) | 1);
  if (rounding == Rounding::kZero || (rounding == Rounding::kDown) == (exact > 0)) return zero;
  return std::nextafter(zero, exact > 0 ? HUGE_VAL : -HUGE_VAL);
}

uint64_t ConvertOne(uint64_t raw, const Plan& p) {
  const Type to = static_cast<Type>(p.to), from = static_cast<Type>(p.from);
  if (!IsFloat(from)) {
    const uint64_t v = Extend(raw, from);
    return IsFloat(to) ? EncodeFloat(IntegerAsDouble(v, p), to, p) : IntegerToInteger(v, p);
  }
  double v = FloatValue(raw, from, (p.flags & kFtz) != 0);
  if (!IsFloat(to)) return FloatToInteger(v, p);
  if ((p.flags & kToIntegral) == 0) return EncodeFloat(v, to, p);
  Plan exact = p;
  exact.rounding = static_cast<uint8_t>(Rounding::kNearest);
  return EncodeFloat(RoundIntegral(v, static_cast<Rounding>(p.rounding)), to, exact);
}

void RunConvert(Warp& w, const Op& op, uint32_t lanes) {
  const Plan p = std::bit_cast<Plan>(op.offset);
  ForLanes(lanes, [&](int i) {
    WriteRegister(w, op.d, p.to_bytes, i, ConvertOne(ReadRegister(w, op.a, p.from_bytes, i), p));
  });
}

// The forms that kernels are full of.
struct Cast {
  template <class R, class A>
  struct To {
    static R Do(A a) { return static_cast<R>(a); }
  };
};
struct HalfToSingle {
  static float Do(uint16_t a) { return F16::Decode(a); }
};
struct SingleToHalf {
  static uint16_t Do(float a) { return F16::Encode(a); }
};
struct BrainToSingle {
  static float Do(uint16_t a) { return Bf16::Decode(a); }
};
struct SingleToBrain {
  static uint16_t Do(float a) { return Bf16::Encode(a); }
};

Handler FastConvert(const Plan& p) {
  const Type to = static_cast<Type>(p.to), from = static_cast<Type>(p.from);
  if (p.flags != 0 || p.to_bytes != Bytes(to) || p.from_bytes != Bytes(from)) return nullptr;
  if (to == Type::kF32 && from == Type::kF16) return Unary<float, uint16_t, HalfToSingle>;
  if (to == Type::kF32 && from == Type::kBf16) return Unary<float, uint16_t, BrainToSingle>;
  if (!IsFloat(to) && Bytes(to) == 8 && from == Type::kU32)
    return Unary<uint64_t, uint32_t, Cast::To<uint64_t, uint32_t>>;
  if (!IsFloat(to) && Bytes(to) == 8 && from == Type::kS32)
    return Unary<int64_t, int32_t, Cast::To<int64_t, int32_t>>;
  if (!IsFloat(to) && !IsFloat(from) && Bytes(to) == 4 && Bytes(from) == 8)
    return Unary<uint32_t, uint64_t, Cast::To<uint32_t, uint64_t>>;
  if (p.rounding != static_cast<uint8_t>(Rounding::kNearest)) return nullptr;
  if (to == Type::kF16 && from == Type::kF32) return Unary<uint16_t, float, SingleToHalf>;
  if (to == Type::kBf16 && from == Type::kF32) return Unary<uint16_t, float, SingleToBrain>;
  if (to == Type::kF32 && from == Type::kS32)
    return Unary<float, int32_t, Cast::To<float, int32_t>>;
  if (to == Type::kF32 && from == Type::kU32)
    return Unary<float, uint32_t, Cast::To<float, uint32_t>>;
  return nullptr;
}

// Two numbers of f32 into the halves of a register, the first into the upper.
void RunPack(Warp& w, const Op& op, uint32_t lanes) {
  const Plan p = std::bit_cast<Plan>(op.offset);
  const Type to = static_cast<Type>(p.to);
  const int half = 4 * p.to_bytes;
  const float* const a = w.In<float>(op.a);
  const float* const b = w.In<float>(op.b);
  ForLanes(lanes, [&](int i) {
    const uint64_t v = EncodeFloat(a[i], to, p) << half | EncodeFloat(b[i], to, p);
    WriteRegister(w, op.d, p.to_bytes, i, v);
  });
}

// Between pairs: f16x2 and pairs of 8-bit floats.
void RunPairs(Warp& w, const Op& op, uint32_t lanes) {
  const Plan p = std::bit_cast<Plan>(op.offset);
  const Type to = static_cast<Type>(p.to), from = static_cast<Type>(p.from);
  ForLanes(lanes, [&](int i) {
    const uint64_t raw = ReadRegister(w, op.a, p.from_bytes, i);
    uint64_t v = 0;
    for (int k = 0; k < 2; ++k) {
      const auto part = raw >> (4 * p.from_bytes * k);
      double x = 0;
      if (from == Type::kF16x2)
        x = F16::Decode(static_cast<uint16_t>(part));
      else if (from == Type::kBf16x2)
        x = Bf16::Decode(static_cast<uint16_t>(part));
      else
        x = from == Type::kE4m3x2 ? DecodeE4m3(static_cast<uint8_t>(part))
                                  : DecodeE5m2(static_cast<uint8_t>(part));
      v |= EncodeFloat(x, to, p) << (4 * p.to_bytes * k);
    }
    WriteRegister(w, op.d, p.to_bytes, i, v);
  });
}

bool IsPair(Type t) {
  return t == Type::kF16x2 || t == Type::kBf16x2 || t == Type::kE4m3x2 || t == Type::kE5m2x2;
}

void DecodePairs(Decoder& d, Plan p) {
  const Type to = static_cast<Type>(p.to), from = static_cast<Type>(p.from);
  const bool pack = from == Type::kF32;
  if (!IsPair(to) || (!pack && !IsPair(from)) || !d.Want(pack ? 3 : 2))
    return d.Fail("this form is not supported");
  p.to_bytes = static_cast<uint8_t>(Bytes(to));
  p.from_bytes = static_cast<uint8_t>(Bytes(from));
  Op op;
  op.run = pack ? RunPack : RunPairs;
  op.d = d.Destination(0, p.to_bytes);
  op.a = d.Source(1, p.from_bytes);
  if (pack) op.b = d.Source(2, 4);
  op.offset = std::bit_cast<int64_t>(p);
  d.Emit(op);
}

}  // namespace

void DecodeConvert(Decoder& d) {
  Plan p{};
  const int integral = d.TakeOneOf({"rni", "rzi", "rmi", "rpi"}),
            rounding = d.TakeOneOf({"rn", "rz", "rm", "rp", "rna"});
  if (d.Take("ftz")) p.flags |= kFtz;
  if (d.Take("sat")) p.flags |= kSat;
  if (d.Take("relu")) p.flags |= kRelu;
  if (d.Take("satfinite")) p.flags |= kSatFinite;
  const Type to = d.TakeType(), from = d.TakeType();
  p.to = static_cast<uint8_t>(to);
  p.from = static_cast<uint8_t>(from);
  p.rounding = static_cast<uint8_t>(std::max(std::max(integral, rounding), 0));
  if (IsPair(to) || IsPair(from)) return DecodePairs(d, p);
  const auto known = [](Type t) { return IsFloat(t) || IsInteger(t); };
  if (!known(to) || !known(from) || from == Type::kTf32 || !d.Want(2))
    return d.Fail("this conversion is not supported");
  if (IsFloat(to) && IsFloat(from) && integral >= 0) p.flags |= kToIntegral;
  int to_bytes = Bytes(to), from_bytes = Bytes(from);
  Op op;
  op.a = d.AnySource(d.operand(1), from_bytes, from_bytes);
  op.d = d.AnyDestination(d.operand(0), to_bytes);
  if (to_bytes < Bytes(to)) return d.Fail("the destination is too small");
  p.to_bytes = static_cast<uint8_t>(to_bytes);
  p.from_bytes = static_cast<uint8_t>(from_bytes);
  const Handler fast = FastConvert(p);
  op.run = fast != nullptr ? fast : RunConvert;
  op.offset = std::bit_cast<int64_t>(p);
  d.Emit(op);
}

}  // namespace forge::ptx
