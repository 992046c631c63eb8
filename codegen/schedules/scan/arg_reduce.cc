// SPDX-License-Identifier: Apache-2.0
// Index reductions: an invocation for each output where there are many, a workgroup for each where
// rows are long; parts of rows where that is too few.
#include "ir/ops/reduction/arg_reduce.h"

#include "codegen/schedules/scan/fold_parameters.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

struct ArgForm {
  FoldedAxis axis;
  bool keep_dims = true;
  const RowSpace& space() const { return axis.space; }
};

std::optional<ArgForm> ArgFormOf(const Region& r) {
  const auto* op = r.AnchorAs<ir::ArgReduce>();
  if (op == nullptr) return std::nullopt;
  std::vector<int64_t> axes{op->axis};
  if (op->all) {
    axes.clear();
    for (int64_t a = 0; a < r.anchor_inputs()[0].rank(); ++a) axes.push_back(a);
  }
  const FoldKind kind = op->kind == ir::ArgReduceKind::kMax ? FoldKind::kMax : FoldKind::kMin;
  const FoldRule rule{kind, r.anchor_inputs()[0].dtype(), true, op->select_last_index};
  return ArgForm{{rule, RowSpace(r, axes)}, op->keep_dims};
}

// Stores the index of rows from `first_row` on.
void Finish(Emission& m, const ArgForm& f, const Dim& first_row, const Vals& found) {
  const int lanes = found[1].type().lanes;
  const Dim row = first_row + m.e.Lane(lanes);
  const Dims index = f.keep_dims ? f.space().Index(row, 0) : Unflatten(row, f.space().outer);
  m.e.Finish(index, convert(found[1], DType::kI64), lanes);
}

Launch CombineLaunch(const Region& r, const ArgForm& f, int64_t parts, std::string name) {
  return ForPlaces(r, std::move(name), 64, {f.space().rows()}, [&](Emission& m, const Dims& at) {
    Finish(m, f, at[0], FoldScratch(f.axis, parts).Gather(m, parts, at[0], 1));
  });
}

Program ProgramOf(const Region& r, const ArgForm& f, int64_t parts, Launch fold) {
  if (parts == 1) return OneLaunch(std::move(fold));
  return SplitProgram(
      std::move(fold), FoldScratch(f.axis, parts).Bytes(), "_combine",
      [&](std::string name) { return CombineLaunch(r, f, parts, std::move(name)); });
}

// ---- an invocation for each output --------------------------------------------------------------

FoldSplit SplitOutputs(const Region& r, const ArgForm& f) {
  return {r, f.axis, SplitFoldColumns(r.caps(), kSplitOutputs)};
}

FoldColumns ArgOutputsDefaults(const Region& r, const ArgForm& f) {
  return DefaultFoldColumns(SplitOutputs(r, f));
}

Verdict ArgOutputsFit(const Region& r, const ArgForm& f, const FoldColumns& t) {
  return FoldColumnsFit(SplitOutputs(r, f), t);
}

Program ArgOutputsEmit(const Region& r, const ArgForm& f, const FoldColumns& t) {
  const auto body = [&](Emission& m, const Dims& at) {
    AxisWalk walk(m, f.axis, t.tile());
    const Dim row = at[1] * t.across;
    const AxisPart part(walk.Vectors(), at[0], t.parts);
    const Vals found = walk.Fold(row, {m.e.Value(part.begin), m.e.Value(part.end), m.b.Int(1)});
    if (t.parts > 1)
      FoldScratch(f.axis, t.parts).Store(m, at[0], row, found);
    else
      Finish(m, f, row, found);
  };
  const std::string name =
      fmt::format("arg_reduce_outputs_{}x{}{}", t.across, t.along, SplitText(t.parts));
  return ProgramOf(
      r, f, t.parts,
      ForPlaces(r, name, t.workgroup, {t.parts, FloorDiv(f.space().rows(), t.across)}, body));
}

// ---- a workgroup for each row -------------------------------------------------------------------

FoldRows ArgRowsDefaults(const Region& r, const ArgForm& f) {
  return DefaultFoldRows({r, f.axis, kSplitRows});
}

Verdict ArgRowsFit(const Region& r, const ArgForm& f, const FoldRows& t) {
  constexpr int64_t kLongRow = 512, kFewOutputs = 32;  // as of reductions
  const RowSpace& space = f.space();
  if (space.within.empty()) return Verdict::No("rows are short");
  if (!space.last() && space.rows().min() >= kFewOutputs)
    return Verdict::No("columns are reduced side by side");
  return FoldRowsFit({r, f.axis, kSplitRows}, t, kLongRow);
}

Program ArgRowsEmit(const Region& r, const ArgForm& f, const FoldRows& t) {
  Emission m(r, fmt::format("arg_reduce_rows_{}x{}{}", t.workgroup, t.along, SplitText(t.parts)),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  m.Guarded(m.Workgroups(f.space().rows() * t.parts), [&](const Dim& at) {
    const Dim row = FloorDiv(at, t.parts), which = Mod(at, t.parts);
    AxisWalk walk(m, f.axis, t.tile());
    const AxisPart part(walk.Vectors(), which, t.parts);
    const Val local = m.b.Builtin(BuiltinKind::kLocalX);
    const Vals mine =
        walk.Fold(row, {m.e.Value(part.begin) + local, m.e.Value(part.end), m.b.Int(t.workgroup)});
    const Vals found = WorkgroupFold(m, f.axis.rule).Reduce(mine);
    m.b.If(local == 0.0, [&] {
      if (t.parts > 1)
        FoldScratch(f.axis, t.parts).Store(m, which, row, found);
      else
        Finish(m, f, row, found);
    });
  });
  return ProgramOf(r, f, t.parts, std::move(m).Take());
}

}  // namespace

const Schedule kArgReduceRows =
    ScheduleOn<FoldRows, ArgFormOf, ArgRowsDefaults, ArgRowsFit, ArgRowsEmit>("arg_reduce_rows");
const Schedule kArgReduceOutputs =
    ScheduleOn<FoldColumns, ArgFormOf, ArgOutputsDefaults, ArgOutputsFit, ArgOutputsEmit>(
        "arg_reduce_outputs");

}  // namespace forge::codegen
