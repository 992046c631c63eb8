// SPDX-License-Identifier: Apache-2.0
// setp, set, testp, selp, slct. Source: PTX ISA 9.5, "Comparison and Selection Instructions".
#include "tests/ptx/machine/instructions/lanewise.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

enum class Relation : uint8_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan
};

template <class T, Relation kR>
bool Holds(T a, T b) {
  bool nan = false;
  if constexpr (std::is_floating_point_v<T>) nan = std::isnan(a) || std::isnan(b);
  switch (kR) {
    case Relation::kEq:
      return a == b;
    case Relation::kNe:
      return !nan && a != b;
    case Relation::kLt:
      return a < b;
    case Relation::kLe:
      return a <= b;
    case Relation::kGt:
      return a > b;
    case Relation::kGe:
      return a >= b;
    case Relation::kEqu:
      return nan || a == b;
    case Relation::kNeu:
      return nan || a != b;
    case Relation::kLtu:
      return nan || a < b;
    case Relation::kLeu:
      return nan || a <= b;
    case Relation::kGtu:
      return nan || a > b;
    case Relation::kGeu:
      return nan || a >= b;
    case Relation::kNum:
      return !nan;
    case Relation::kNan:
      return nan;
  }
  return false;
}

struct Same {
  template <class T>
  static T Do(T v) {
    return v;
  }
};
struct Flushed {
  static float Do(float v) { return Flush(v); }
};
struct FromF16 {
  static float Do(uint16_t v) { return F16::Decode(v); }
};
struct FromBf16 {
  static float Do(uint16_t v) { return Bf16::Decode(v); }
};

// Op::flags of a comparison.
constexpr uint8_t kCombine = 3;  // mask: 0 none, 1 and, 2 or, 3 xor
constexpr uint8_t kNegateOther = 4;

uint32_t Combine(const Warp& w, const Op& op, uint32_t result) {
  if ((op.flags & kCombine) == 0) return result;
  uint32_t other = w.predicates[op.c];
  if ((op.flags & kNegateOther) != 0) other = ~other;
  switch (op.flags & kCombine) {
    case 1:
      return result & other;
    case 2:
      return result | other;
    default:
      return result ^ other;
  }
}

template <class T, class Read, Relation kR>
void RunSetp(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  const T* const b = w.In<T>(op.b);
  uint32_t result = 0;
  for (int i = 0; i < kLanes; ++i)
    result |= uint32_t{Holds<decltype(Read::Do(a[i])), kR>(Read::Do(a[i]), Read::Do(b[i]))} << i;
  const uint32_t first = Combine(w, op, result), second = Combine(w, op, ~result);
  w.OutPredicate(op.d, first, lanes);
  if (op.e >= 0) w.OutPredicate(op.e, second, lanes);
}

template <class T, class Read>
Handler SetpOf(Relation r) {
  switch (r) {
    case Relation::kEq:
      return RunSetp<T, Read, Relation::kEq>;
    case Relation::kNe:
      return RunSetp<T, Read, Relation::kNe>;
    case Relation::kLt:
      return RunSetp<T, Read, Relation::kLt>;
    case Relation::kLe:
      return RunSetp<T, Read, Relation::kLe>;
    case Relation::kGt:
      return RunSetp<T, Read, Relation::kGt>;
    case Relation::kGe:
      return RunSetp<T, Read, Relation::kGe>;
    case Relation::kEqu:
      return RunSetp<T, Read, Relation::kEqu>;
    case Relation::kNeu:
      return RunSetp<T, Read, Relation::kNeu>;
    case Relation::kLtu:
      return RunSetp<T, Read, Relation::kLtu>;
    case Relation::kLeu:
      return RunSetp<T, Read, Relation::kLeu>;
    case Relation::kGtu:
      return RunSetp<T, Read, Relation::kGtu>;
    case Relation::kGeu:
      return RunSetp<T, Read, Relation::kGeu>;
    case Relation::kNum:
      return RunSetp<T, Read, Relation::kNum>;
    case Relation::kNan:
      return RunSetp<T, Read, Relation::kNan>;
  }
  return nullptr;
}

Handler SetpFor(Type t, Relation r, bool ftz) {
  switch (t) {
    case Type::kB16:
    case Type::kU16:
      return SetpOf<uint16_t, Same>(r);
    case Type::kB32:
    case Type::kU32:
      return SetpOf<uint32_t, Same>(r);
    case Type::kB64:
    case Type::kU64:
      return SetpOf<uint64_t, Same>(r);
    case Type::kS16:
      return SetpOf<int16_t, Same>(r);
    case Type::kS32:
      return SetpOf<int32_t, Same>(r);
    case Type::kS64:
      return SetpOf<int64_t, Same>(r);
    case Type::kF16:
      return SetpOf<uint16_t, FromF16>(r);
    case Type::kBf16:
      return SetpOf<uint16_t, FromBf16>(r);
    case Type::kF32:
      return ftz ? SetpOf<float, Flushed>(r) : SetpOf<float, Same>(r);
    case Type::kF64:
      return SetpOf<double, Same>(r);
    default:
      return nullptr;
  }
}

// set: the predicate of lane i as a number.
void RunSpread(Warp& w, const Op& op, uint32_t lanes) {
  uint32_t r[kLanes];
  for (int i = 0; i < kLanes; ++i)
    r[i] = (w.predicates[op.a] >> i & 1) != 0 ? static_cast<uint32_t>(op.offset) : 0;
  w.Out(op.d, r, lanes);
}

// testp, on f32 or f64.
enum class Property : uint8_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };

template <class T>
void RunTestp(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  uint32_t result = 0;
  for (int i = 0; i < kLanes; ++i) {
    bool is = false;
    switch (static_cast<Property>(op.flags)) {
      case Property::kFinite:
        is = std::isfinite(a[i]);
        break;
      case Property::kInfinite:
        is = std::isinf(a[i]);
        break;
      case Property::kNumber:
        is = !std::isnan(a[i]);
        break;
      case Property::kNotANumber:
        is = std::isnan(a[i]);
        break;
      case Property::kNormal:
        is = std::isnormal(a[i]);
        break;
      case Property::kSubnormal:
        is = std::fpclassify(a[i]) == FP_SUBNORMAL;
        break;
    }
    result |= uint32_t{is} << i;
  }
  w.OutPredicate(op.d, result, lanes);
}

void DecodeTestp(Decoder& d) {
  const int property =
      d.TakeOneOf({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  const Type t = d.TakeType();
  if (property < 0 || (t != Type::kF32 && t != Type::kF64))
    return d.Fail("this form is not supported");
  Op op;
  op.run = t == Type::kF32 ? RunTestp<float> : RunTestp<double>;
  op.flags = static_cast<uint8_t>(property);
  op.a = d.Source(1, Bytes(t));
  op.d = d.PredicateDestination(d.operand(0));
  d.Emit(op);
}

// setp.f16x2 gives one predicate for each half.
template <class N>
void RunSetpPacked(Warp& w, const Op& op, uint32_t lanes) {
  const uint16_t* const a = w.In<uint16_t>(op.a);
  const uint16_t* const b = w.In<uint16_t>(op.b);
  uint32_t result[2] = {};
  for (int i = 0; i < 2 * kLanes; ++i) {
    const float x = N::Decode(a[i]), y = N::Decode(b[i]);
    const bool nan = x != x || y != y;
    const auto relation = static_cast<Relation>(op.offset);
    const int ordered = static_cast<int>(relation) % 6;
    bool holds = ordered == 0   ? x == y
                 : ordered == 1 ? x != y
                 : ordered == 2 ? x < y
                 : ordered == 3 ? x <= y
                 : ordered == 4 ? x > y
                                : x >= y;
    if (nan)
      holds = relation >= Relation::kEqu && relation != Relation::kNum;
    else if (relation >= Relation::kNum)
      holds = relation == Relation::kNum;
    result[i % 2] |= uint32_t{holds} << (i / 2);
  }
  w.OutPredicate(op.d, Combine(w, op, result[0]), lanes);
  if (op.e >= 0) w.OutPredicate(op.e, Combine(w, op, result[1]), lanes);
}

int TakeRelation(Decoder& d) {
  const int named = d.TakeOneOf({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu",
                                 "gtu", "geu", "num", "nan", "lo", "ls", "hi", "hs"});
  static constexpr int kUnsigned[] = {2, 3, 4, 5};  // lo, ls, hi, hs
  return named < 14 ? named : kUnsigned[named - 14];
}

}  // namespace

void DecodeCompare(Decoder& d) {
  if (d.in().opcode == "testp") return DecodeTestp(d);
  const bool set = d.in().opcode == "set";
  const int relation = TakeRelation(d), combine = d.TakeOneOf({"and", "or", "xor"}) + 1;
  const bool ftz = d.Take("ftz");
  const Type result = set ? d.TakeType() : Type::kPred, t = d.TakeType();
  if (relation < 0 || !d.Want(combine > 0 ? 4 : 3))
    return d.Fail("this comparison is not supported");
  Op op;
  op.run = SetpFor(t, static_cast<Relation>(relation), ftz);
  if (t == Type::kF16x2) op.run = RunSetpPacked<F16>;
  if (t == Type::kBf16x2) op.run = RunSetpPacked<Bf16>;
  if (op.run == nullptr || (set && Bytes(t) == 4 && op.run == RunSetpPacked<F16>))
    return d.Fail("this comparison is not supported");
  op.offset = relation;
  op.flags = static_cast<uint8_t>(combine);
  op.a = d.Source(1, Bytes(t));
  op.b = d.Source(2, Bytes(t));
  if (combine > 0) {
    op.c = d.PredicateSource(d.operand(3));
    if (d.operand(3).negated) op.flags |= kNegateOther;
  }
  op.d = set ? d.Predicate(-1) : d.PredicateDestination(d.operand(0));
  op.e = !set && d.operand(0).second >= 0 ? d.Predicate(d.operand(0).second) : -1;
  d.Emit(op);
  if (!set) return;
  Op spread;
  spread.run = RunSpread;
  spread.a = op.d;
  spread.offset = result == Type::kF32 ? 0x3f800000 : 0xffffffff;
  if (Bytes(result) != 4) return d.Fail("this result of set is not supported");
  spread.d = d.Destination(0, 4);
  d.Emit(spread);
}

namespace {

template <class T>
void RunSelp(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  const T* const b = w.In<T>(op.b);
  const uint32_t p = op.flags != 0 ? ~w.predicates[op.c] : w.predicates[op.c];
  T r[kLanes];
  for (int i = 0; i < kLanes; ++i) r[i] = (p >> i & 1) != 0 ? a[i] : b[i];
  w.Out(op.d, r, lanes);
}

template <class C>
struct Slct {
  template <class T>
  static T Do(T a, T b, C c) {
    return c >= 0 ? a : b;
  }
};

template <class T>
Handler SlctOf(bool is_float) {
  return is_float ? Ternary<T, T, T, float, Slct<float>> : Ternary<T, T, T, int32_t, Slct<int32_t>>;
}

}  // namespace

void DecodeSelect(Decoder& d) {
  const bool slct = d.in().opcode == "slct";
  if (slct) d.Take("ftz");
  const int bytes = Bytes(d.TakeType());
  if (slct) {
    const Type condition = d.TakeType();
    const bool is_float = condition == Type::kF32;
    const Handler run = bytes == 2   ? SlctOf<uint16_t>(is_float)
                        : bytes == 4 ? SlctOf<uint32_t>(is_float)
                        : bytes == 8 ? SlctOf<uint64_t>(is_float)
                                     : nullptr;
    return EmitLanewise(d, run, bytes, {bytes, bytes, 4});
  }
  if (!d.Want(4)) return;
  Op op;
  op.run = bytes == 2   ? RunSelp<uint16_t>
           : bytes == 4 ? RunSelp<uint32_t>
           : bytes == 8 ? RunSelp<uint64_t>
                        : nullptr;
  if (op.run == nullptr) return d.Fail("this type is not supported");
  op.d = d.Destination(0, bytes);
  op.a = d.Source(1, bytes);
  op.b = d.Source(2, bytes);
  op.c = d.PredicateSource(d.operand(3));
  op.flags = d.operand(3).negated ? 1 : 0;
  d.Emit(op);
}

}  // namespace forge::ptx
