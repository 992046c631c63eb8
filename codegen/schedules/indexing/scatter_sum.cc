// SPDX-License-Identifier: Apache-2.0
// Sums of f32 and narrower floats with an invocation for each update, for few columns. The result
// does not depend on the order: the updates of an element are added as integers of 64 bits, in
// units that follow from the largest exponent among them. That loses less than a sum in f32 does.
#include <bit>

#include "codegen/region/storage.h"
#include "codegen/schedules/indexing/scatter.h"

namespace forge::codegen {
namespace {
namespace scatter_sum {

struct ScatterSum {
  int64_t workgroup = 64;
  static constexpr Field kFields[] = {
      FieldOf<&ScatterSum::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128|256")};
};

// Three words of scratch for each element of x: the largest exponent, and the sum.
constexpr int64_t kWords = 3;
enum Word : int { kTop, kLow, kHigh };
// Flags in kTop, above all exponents: updates that are no numbers, and that the sum is stored.
constexpr uint32_t kPlusInfinity = 0x200, kMinusInfinity = 0x400, kNan = 0x800, kDone = 0x80000000u;
constexpr int kFraction = 23;  // bits of an f32
constexpr uint32_t kExponents = 0xff;

ScatterSum Defaults(const Region&, const ScatterForm&) { return {}; }

Verdict Fits(const Region& r, const ScatterForm& s, const ScatterSum& t) {
  if (Verdict v = ScatterStands(r); !v) return v;
  if (s.op.mode != ir::ScatterMode::kAdd || ComputeType(s.dtype) != DType::kF32)
    return Verdict::No("only sums of f32, f16 and bf16");
  if (HasManyColumns(r, s)) return Verdict::No("there are columns enough for all invocations");
  if (Verdict v = ScratchFits(r, ir::Product(s.x) * (4 * kWords)); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps());
}

// A sum of two words, the upper one signed.
struct Wide {
  Val low, high;
};
Wide Negated(const Wide& v) {
  return {~v.low + 1, ~v.high + select(v.low == 0, v.low.b->Bits(kU32, 1), 0)};
}
Wide Select(Val condition, const Wide& a, const Wide& b) {
  return {select(condition, a.low, b.low), select(condition, a.high, b.high)};
}

// Conversion between f32 and integers in units of 2^(top - 126 - bits), with `top` the largest
// exponent as f32 stores it; numbers are below 2^bits, and `count` of them do not overflow.
class Units {
 public:
  explicit Units(int64_t count) : bits_(62 - std::bit_width(static_cast<uint64_t>(count))) {}

  Wide Of(Val v, Val top) const {
    const Val bits = bitcast(v, DType::kU32);
    const Val exponent = (bits >> kFraction) & bits.b->Bits(kU32, kExponents);
    const Val fraction = bits & bits.b->Bits(kU32, (1u << kFraction) - 1);
    const Val whole =
        select(exponent == 0, fraction, fraction | bits.b->Bits(kU32, 1u << kFraction));
    const Val less = max(top, 1) - max(exponent, 1);  // exponent 0 counts as 1
    const Val spare = bits.b->Bits(kU32, static_cast<uint64_t>(bits_ - kFraction - 1));
    const Val left = spare - less, right = less - spare;  // one of them wraps, and is not used
    const Val high =
        select(left >= 32, whole << (left - 32), select(left == 0, 0, whole >> (32 - left)));
    const Wide sum =
        Select(less <= spare, {whole << left, high}, {whole >> right, bits.b->Bits(kU32, 0)});
    return Select(bits >= 0x80000000u, Negated(sum), sum);
  }

  Val ToF32(const Wide& sum, Val top) const {
    const Val negative = sum.high >= 0x80000000u;
    const Wide size = Select(negative, Negated(sum), sum);
    const Val f = convert(size.high, DType::kF32) * 0x1p32 + convert(size.low, DType::kF32);
    const Val exponent = bitcast(max(top, 1), DType::kI32) - (126.0 + bits_);
    const Val half = exponent >> 1;  // two steps, since 2^exponent may be no f32
    const auto power = [](Val e) { return exp2_int(convert(e, DType::kF32)); };
    const Val v = f * power(half) * power(exponent - half);
    return select(negative, -v, v);
  }

 private:
  int bits_;
};

class Sums {
 public:
  Sums(Emission& m, const ScatterForm& s) : m_(m), s_(s), size_(ir::Product(s.x)) {}
  Val Atomic(Word w, AtomicKind kind, const ir::Dim& flat, Val v) const {
    return m_.e.AtomicScratch(0, kind, size_ * w + flat, v);
  }
  Val Load(Word w, const ir::Dim& flat) const {
    return m_.e.LoadScratch(0, kU32, size_ * w + flat);
  }
  Val U32(uint32_t v) const { return m_.b.Bits(kU32, v); }

  void Clear(const ScatterPlace& p) const {
    for (const Word w : {kTop, kLow, kHigh}) Atomic(w, AtomicKind::kExchange, p.flat, U32(0));
  }

  void FindTop(const ScatterPlace& p) const {
    const Val update = m_.e.At(2, p.at), bits = bitcast(update, DType::kU32);
    const Val exponent = (bits >> kFraction) & U32(kExponents);
    const auto raise = [&] { return Vals{Atomic(kTop, AtomicKind::kMax, p.flat, exponent)}; };
    const auto flag = [&] {
      const Val infinite = select(bits >= 0x80000000u, U32(kMinusInfinity), U32(kPlusInfinity));
      const Val what = select(isnan(update), U32(kNan), infinite);
      return Vals{Atomic(kTop, AtomicKind::kOr, p.flat, what)};
    };
    m_.b.If(exponent == kExponents, flag, raise);
  }

  void Add(const ScatterPlace& p, const Units& units) const {
    const Val top = Load(kTop, p.flat);
    m_.b.If(top < kPlusInfinity, [&] {
      const Wide update = units.Of(m_.e.At(2, p.at), top);
      const Val before = Atomic(kLow, AtomicKind::kAdd, p.flat, update.low);
      const Val carry = select(before + update.low < before, U32(1), 0);
      Atomic(kHigh, AtomicKind::kAdd, p.flat, update.high + carry);
    });
  }

  // The first update that comes adds the sum to the element.
  void Store(const ScatterPlace& p, const Units& units) const {
    const Val top = Atomic(kTop, AtomicKind::kExchange, p.flat, U32(kDone));
    m_.b.If(top < kDone, [&] {
      const Val sum = units.ToF32({Load(kLow, p.flat), Load(kHigh, p.flat)}, top);
      m_.e.Finish(p.to, ElementBefore(m_, s_, p.flat) + WithFlags(sum, top));
    });
  }

 private:
  Val WithFlags(Val sum, Val top) const {
    const auto has = [&](uint32_t flag) { return (top & U32(flag)) != 0; };
    const Val both = has(kPlusInfinity) & has(kMinusInfinity);
    const auto of = [&](uint32_t bits) { return bitcast(U32(bits), DType::kF32); };
    const Val infinite = select(has(kPlusInfinity), of(0x7f800000u),
                                select(has(kMinusInfinity), of(0xff800000u), sum));
    return select(has(kNan) | both, of(0x7fc00000u), infinite);
  }

  Emission& m_;
  const ScatterForm& s_;
  ir::Dim size_;
};

Program Emit(const Region& r, const ScatterForm& s, const ScatterSum& t) {
  const Units units(s.count().max());
  const auto launch = [&](std::string name,
                          absl::FunctionRef<void(const Sums&, const ScatterPlace&)> step) {
    return ForUpdates(r, s, std::move(name), t.workgroup,
                      [&](Emission& m, const ScatterPlace& p) { step(Sums(m, s), p); });
  };
  std::vector<Launch> launches;
  launches.push_back(
      launch("scatter_clear", [](const Sums& sums, const ScatterPlace& p) { sums.Clear(p); }));
  launches.push_back(
      launch("scatter_top", [](const Sums& sums, const ScatterPlace& p) { sums.FindTop(p); }));
  launches.push_back(
      launch("scatter_add", [&](const Sums& sums, const ScatterPlace& p) { sums.Add(p, units); }));
  launches.push_back(launch(
      "scatter_sum", [&](const Sums& sums, const ScatterPlace& p) { sums.Store(p, units); }));
  return ScatterProgram(r, std::move(launches), {ir::Product(s.x).max() * 4 * kWords});
}

}  // namespace scatter_sum
}  // namespace

const Schedule kScatterSum =
    ScheduleOn<scatter_sum::ScatterSum, ScatterFormOf, scatter_sum::Defaults, scatter_sum::Fits,
               scatter_sum::Emit>("scatter_sum");

}  // namespace forge::codegen
