// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/reduction/softmax.h"

#include <limits>

#include "codegen/schedules/rows/rows.h"
#include "codegen/schedules/split.h"
#include "ir/ops/reduction/softmax_statistics.h"

namespace forge::codegen {
namespace {

using ir::Dim;

template <class Op>
std::vector<int64_t> Axes(const Region& r) {
  return {r.AnchorAs<Op>()->axis};
}

void Emit(Row& row) {
  auto [top, sum] = row.SumExponentials();
  if (row.op<ir::Softmax>().log) {
    row.Store([top = top, log_sum = log(sum)](Row::Numbers x, Row::Operands) {
      return x[0] - top - log_sum;
    });
    return;
  }
  if (row.op<ir::Softmax>().masked_rows_zero) sum = select(sum == 0.0, 1.0, sum);
  row.Store(
      [top = top, sum = sum](Row::Numbers x, Row::Operands) { return exp(x[0] - top) / sum; });
}

constexpr RowFormula kFormula{"softmax", &Axes<ir::Softmax>, &Emit};

void EmitStatistics(Row& row) {
  const auto [top, sum] = row.SumExponentials();
  const double none = -std::numeric_limits<double>::infinity();
  row.StoreNumber(0, select(sum == 0.0, none, top));
  row.StoreNumber(1, log(sum));
}

// Where rows are few and long, reductions divide them between workgroups.
bool AreMany(const Region& r, const RowSpace& space) {
  return SplitSoftmax(r.caps()).PartsOf(space.rows().max(), space.length().min()) == 1;
}

constexpr RowFormula kStatisticsFormula{.name = "softmax_statistics",
                                        .axes = &Axes<ir::SoftmaxStatistics>,
                                        .emit = &EmitStatistics,
                                        .takes = &AreMany};

// ---- several workgroups to a row ----------------------------------------------------------------

struct SoftmaxSplit {
  int64_t workgroup = 128;
  int64_t elements = 1;  // of a row, loaded at once
  int64_t parts = 1;     // of a row, each a workgroup's
  static constexpr Field kFields[] = {
      FieldOf<&SoftmaxSplit::workgroup>("workgroup", "Invocations in a workgroup.", "64|128|256"),
      FieldOf<&SoftmaxSplit::elements>("elements", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&SoftmaxSplit::parts>("parts", "Workgroups to a row.", "2|16|64|256")};
};

std::optional<RowSpace> SplitRowsOf(const Region& r) {
  if (r.AnchorAs<ir::Softmax>() == nullptr) return std::nullopt;
  return RowSpace(r, Axes<ir::Softmax>(r));
}

// Of top and sum of each part.
int64_t ScratchBytes(const Region& r, const RowSpace& space, int64_t parts) {
  const Type type = AccumulatorOf(r.anchor_output().dtype());
  return (space.rows() * (parts * 2 * ElementBytes(type))).max();
}

SoftmaxSplit SplitDefaults(const Region& r, const RowSpace& space) {
  SoftmaxSplit t;
  if (space.last()) t.elements = space.lanes();
  t.parts = SplitSoftmax(r.caps()).PartsOf(space.rows().max(), space.length().min());
  return t;
}

Verdict SplitFits(const Region& r, const RowSpace& space, const SoftmaxSplit& t) {
  if (t.parts == 1) return Verdict::No("rows are short or many");
  if (t.elements > 1 && !space.last()) return Verdict::No("vectors run along rows");
  if (space.length().divisor() % t.elements != 0)
    return Verdict::No("vectors do not divide the rows");
  if (space.length().max() < t.parts * t.workgroup) return Verdict::No("rows are short");
  // The second launch reads again what the first does.
  SplitOperands bound(r);
  bound.after = r.bindings();
  if (Verdict v = ScratchFits(r, ScratchBytes(r, space, t.parts), bound); !v) return v;
  const Type type = AccumulatorOf(r.anchor_output().dtype());
  return WorkgroupFits(t.workgroup, r.caps(), WorkgroupReduction::Shared(t.workgroup, type));
}

// One of two launches, the same workgroups of the same parts of rows.
class SplitLaunch {
 public:
  SplitLaunch(const Region& r, const RowSpace& space, const SoftmaxSplit& t, std::string name)
      : m_(r, std::move(name), {static_cast<uint32_t>(t.workgroup), 1, 1}),
        space_(space),
        t_(t),
        type_(AccumulatorOf(r.anchor_output().dtype())) {}
  Launch EmitParts();   // into scratch
  Launch EmitResult();  // from there

 private:
  void ForParts(absl::FunctionRef<void(const Dim& at, Row::Share share)> body);
  Row::Exponentials Gather(const Dim& row, const Row::Combiner& combine);

  Emission m_;
  const RowSpace& space_;
  const SoftmaxSplit& t_;
  Type type_;
};

void SplitLaunch::ForParts(absl::FunctionRef<void(const Dim& at, Row::Share share)> body) {
  m_.Guarded(m_.Workgroups(space_.rows() * t_.parts), [&](const Dim& at) {
    const AxisPart part(FloorDiv(space_.length(), t_.elements), Mod(at, t_.parts), t_.parts);
    WorkgroupReduction together(m_, type_);
    const Val local = m_.b.Builtin(BuiltinKind::kLocalX);
    body(at, {.row = FloorDiv(at, t_.parts),
              .along = static_cast<int>(t_.elements),
              .first = part.begin + m_.e.Coordinate(local, t_.workgroup - 1),
              .step = t_.workgroup,
              .combine = [&](ReduceKind kind, Val v) { return together.Reduce(kind, v); },
              .end = part.end});
  });
}

Launch SplitLaunch::EmitParts() {
  ForParts([&](const Dim& at, Row::Share share) {
    const auto [top, sum] = Row(m_, space_, kFormula, std::move(share)).SumExponentials();
    m_.b.If(m_.b.Builtin(BuiltinKind::kLocalX) == 0, [&, top = top, sum = sum] {
      m_.e.StoreScratch(0, at * 2, top);
      m_.e.StoreScratch(0, at * 2 + 1, sum);
    });
  });
  return std::move(m_).Take();
}

// Every workgroup of a row does so: it costs less than a launch between.
Row::Exponentials SplitLaunch::Gather(const Dim& row, const Row::Combiner& combine) {
  Builder& b = m_.b;
  const Val least = b.Literal(type_, LowestOf(type_.elem));
  const Vals mine =
      b.For({b.Builtin(BuiltinKind::kLocalX), b.Int(t_.parts), b.Int(t_.workgroup)},
            {least, b.Literal(type_, 0)}, [&](Val i, const Vals& so_far) {
              const Dim part = row * t_.parts + m_.e.Coordinate(i, t_.parts - 1);
              const Val its = m_.e.LoadScratch(0, type_, part * 2);
              const Val sum = m_.e.LoadScratch(0, type_, part * 2 + 1);
              const Val top = max(so_far[0], its);
              return Vals{top, so_far[1] * exp(so_far[0] - top) + sum * exp(its - top)};
            });
  const Val top = combine(ReduceKind::kMax, mine[0]);
  return {top, combine(ReduceKind::kSum, mine[1] * exp(mine[0] - top))};
}

Launch SplitLaunch::EmitResult() {
  ForParts([&](const Dim&, Row::Share share) {
    share.exponentials = Gather(share.row, share.combine);
    Row row(m_, space_, kFormula, std::move(share));
    Emit(row);
  });
  return std::move(m_).Take();
}

Program SplitEmit(const Region& r, const RowSpace& space, const SoftmaxSplit& t) {
  const std::string name =
      fmt::format("softmax_split_{}x{}_by_{}", t.workgroup, t.elements, t.parts);
  return SplitProgram(SplitLaunch(r, space, t, name).EmitParts(), ScratchBytes(r, space, t.parts),
                      "_combine", [&](std::string combine) {
                        return SplitLaunch(r, space, t, std::move(combine)).EmitResult();
                      });
}

}  // namespace

const Schedule kSoftmaxSplit =
    ScheduleOn<SoftmaxSplit, SplitRowsOf, SplitDefaults, SplitFits, SplitEmit>("softmax_split");
const Schedule kSoftmaxSerial =
    RowSchedule<Scope::kInvocation, ir::Softmax, kFormula>("softmax_serial");
const Schedule kSoftmaxSubgroup =
    RowSchedule<Scope::kSubgroup, ir::Softmax, kFormula>("softmax_subgroup");
const Schedule kSoftmaxRows = RowSchedule<Scope::kWorkgroup, ir::Softmax, kFormula>("softmax_rows");

const Schedule kSoftmaxStatisticsSerial =
    RowSchedule<Scope::kInvocation, ir::SoftmaxStatistics, kStatisticsFormula>(
        "softmax_statistics_serial");
const Schedule kSoftmaxStatisticsSubgroup =
    RowSchedule<Scope::kSubgroup, ir::SoftmaxStatistics, kStatisticsFormula>(
        "softmax_statistics_subgroup");
const Schedule kSoftmaxStatisticsRows =
    RowSchedule<Scope::kWorkgroup, ir::SoftmaxStatistics, kStatisticsFormula>(
        "softmax_statistics_rows");

}  // namespace forge::codegen
