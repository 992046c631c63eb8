// SPDX-License-Identifier: Apache-2.0
// Scatter with an invocation for each update, for few columns: integer atomics on a word of scratch
// for each element of x find the last update (set), or combine integers. All of these give the same
// word in any order.
#include "codegen/region/storage.h"
#include "codegen/schedules/indexing/scatter.h"

namespace forge::codegen {
namespace {
namespace scatter_words {

struct ScatterWords {
  int64_t workgroup = 64;
  static constexpr Field kFields[] = {FieldOf<&ScatterWords::workgroup>(
      "workgroup", "Invocations in a workgroup.", "32|64|128|256")};
};

using ir::ScatterMode;

ScatterWords Defaults(const Region&, const ScatterForm&) { return {}; }

Verdict IsOrderless(const ScatterForm& s) {
  if (s.op.mode == ScatterMode::kSet) return Verdict::Yes();
  if (s.op.mode == ScatterMode::kMul) return Verdict::No("products have no integer atomics");
  if (BitWidth(s.dtype) > 32) return Verdict::No(fmt::format("atomics of {}", Name(s.dtype)));
  if (s.op.mode == ScatterMode::kAdd && IsFloat(s.dtype))
    return Verdict::No("sums of floats depend on their order");
  return Verdict::Yes();
}

Verdict Fits(const Region& r, const ScatterForm& s, const ScatterWords& t) {
  if (Verdict v = ScatterStands(r); !v) return v;
  if (Verdict v = IsOrderless(s); !v) return v;
  if (HasManyColumns(r, s)) return Verdict::No("there are columns enough for all invocations");
  if (Verdict v = ScratchFits(r, ir::Product(s.x) * 4); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps());
}

// Numbers as i32 of the same order; NaN is beyond all numbers on the side that wins.
class Keys {
 public:
  explicit Keys(const ScatterForm& s) : s_(s) {}
  Val Encode(Val v) const {
    if (!IsFloat(s_.dtype)) return Flipped(bitcast(v, DType::kI32));
    const Val key = Mirrored(bitcast(v, DType::kI32));
    return select(isnan(v), s_.op.mode == ScatterMode::kMax ? INT32_MAX : INT32_MIN, key);
  }
  Val Decode(Val key) const {
    if (IsFloat(s_.dtype)) return bitcast(Mirrored(key), DType::kF32);
    return Wrap(s_.dtype, bitcast(Flipped(key), ComputeType(s_.dtype)));
  }
  AtomicKind kind() const {
    if (s_.op.mode == ScatterMode::kAdd) return AtomicKind::kAdd;
    return s_.op.mode == ScatterMode::kMax ? AtomicKind::kMax : AtomicKind::kMin;
  }

 private:
  // Floats below zero are ordered backwards.
  static Val Mirrored(Val bits) { return select(bits < 0, bits ^ bits.b->Int(INT32_MAX), bits); }
  Val Flipped(Val bits) const {
    if (s_.dtype != DType::kU32 || s_.op.mode == ScatterMode::kAdd) return bits;
    return bits ^ bits.b->Int(INT32_MIN);
  }
  const ScatterForm& s_;
};

std::vector<Launch> EmitSet(const Region& r, const ScatterForm& s, int64_t workgroup) {
  std::vector<Launch> out;
  out.push_back(
      ForUpdates(r, s, "scatter_clear", workgroup, [](Emission& m, const ScatterPlace& p) {
        m.e.AtomicScratch(0, AtomicKind::kExchange, p.flat, m.b.Int(-1));
      }));
  out.push_back(
      ForUpdates(r, s, "scatter_last", workgroup, [&](Emission& m, const ScatterPlace& p) {
        m.e.AtomicScratch(0, AtomicKind::kMax, p.flat, m.e.Value(p.at[s.axis]));
      }));
  out.push_back(
      ForUpdates(r, s, "scatter_words", workgroup, [&](Emission& m, const ScatterPlace& p) {
        const Val last = m.e.LoadScratch(0, kI32, p.flat);
        m.b.If(last == m.e.Value(p.at[s.axis]), [&] { m.e.Finish(p.to, m.e.At(2, p.at)); });
      }));
  return out;
}

// Every update of an element stores it at the end, all of them the same number.
std::vector<Launch> EmitCombined(const Region& r, const ScatterForm& s, int64_t workgroup) {
  const Keys keys(s);
  std::vector<Launch> out;
  out.push_back(
      ForUpdates(r, s, "scatter_keys", workgroup, [&](Emission& m, const ScatterPlace& p) {
        const Val key = keys.Encode(ElementBefore(m, s, p.flat));
        m.e.AtomicScratch(0, AtomicKind::kExchange, p.flat, key);
      }));
  out.push_back(
      ForUpdates(r, s, "scatter_combine", workgroup, [&](Emission& m, const ScatterPlace& p) {
        m.e.AtomicScratch(0, keys.kind(), p.flat, keys.Encode(m.e.At(2, p.at)));
      }));
  out.push_back(
      ForUpdates(r, s, "scatter_words", workgroup, [&](Emission& m, const ScatterPlace& p) {
        m.e.Finish(p.to, keys.Decode(m.e.LoadScratch(0, kI32, p.flat)));
      }));
  return out;
}

Program Emit(const Region& r, const ScatterForm& s, const ScatterWords& t) {
  const bool set = s.op.mode == ScatterMode::kSet;
  return ScatterProgram(r, set ? EmitSet(r, s, t.workgroup) : EmitCombined(r, s, t.workgroup),
                        {ir::Product(s.x).max() * 4});
}

}  // namespace scatter_words
}  // namespace

const Schedule kScatterWords =
    ScheduleOn<scatter_words::ScatterWords, ScatterFormOf, scatter_words::Defaults,
               scatter_words::Fits, scatter_words::Emit>("scatter_words");

}  // namespace forge::codegen
