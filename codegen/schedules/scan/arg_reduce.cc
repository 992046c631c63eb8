// SPDX-License-Identifier: Apache-2.0
// Index reductions: an invocation for each output where there are many, a workgroup for each where
// rows are long; parts of rows where that is too few.
#include "ir/ops/reduction/arg_reduce.h"

#include "codegen/schedules/scan/axis_fold.h"

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

Verdict SplitFits(const Region& r, const ArgForm& f, int64_t parts) {
  return PartsFit(r, parts, FoldScratch(f.axis, parts).Bytes());
}

// On CPUs few invocations fill the cores.
SplitRule SplitArgOutputs(const Caps& caps) {
  if (!caps.runs_on_cpu) return kSplitOutputs;
  return {.few = 32 * caps.cores,
          .enough = 64 * caps.cores,
          .shortest = 1 << 12,
          .least = 128,
          .most = 512};
}

// ---- an invocation for each output --------------------------------------------------------------

struct ArgOutputs {
  int64_t workgroup = 64;
  int64_t across = 1;  // neighbouring outputs to an invocation
  int64_t along = 1;   // elements of a row, loaded at once
  int64_t parts = 1;   // of a row, each an invocation's
  FoldTile tile() const { return {static_cast<int>(across), static_cast<int>(along)}; }
  static constexpr Field kFields[] = {
      FieldOf<&ArgOutputs::workgroup>("workgroup", "Invocations in a workgroup.", "8|32|64|128"),
      FieldOf<&ArgOutputs::across>("across", "Neighbours to an invocation.", "1|2|4"),
      FieldOf<&ArgOutputs::along>("along", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&ArgOutputs::parts>("parts", "Invocations to a row.", "1|16|128")};
};

ArgOutputs OutputsDefaults(const Region& r, const ArgForm& f) {
  const FoldTile tile = DefaultFoldTile(f.space());
  ArgOutputs t{.across = tile.across, .along = tile.along};
  if (r.caps().runs_on_cpu) t.workgroup = 8;
  t.parts = SplitArgOutputs(r.caps()).PartsOf(f.space().rows().max() / t.across,
                                              f.space().length().min() / t.along);
  if (!SplitFits(r, f, t.parts)) t.parts = 1;
  return t;
}

Verdict OutputsFit(const Region& r, const ArgForm& f, const ArgOutputs& t) {
  if (Verdict v = FoldTileFits(f.space(), t.tile()); !v) return v;
  if (t.parts > 1 && f.space().length().max() < t.parts * t.along)
    return Verdict::No("rows are short");
  if (Verdict v = SplitFits(r, f, t.parts); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps());
}

Program OutputsEmit(const Region& r, const ArgForm& f, const ArgOutputs& t) {
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

struct ArgRows {
  int64_t workgroup = 128;
  int64_t along = 1;  // elements of a row, loaded at once
  int64_t parts = 1;  // of a row, each a workgroup's
  FoldTile tile() const { return {1, static_cast<int>(along)}; }
  static constexpr Field kFields[] = {
      FieldOf<&ArgRows::workgroup>("workgroup", "Invocations in a workgroup.", "64|128|256"),
      FieldOf<&ArgRows::along>("along", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&ArgRows::parts>("parts", "Workgroups to a row.", "1|16|64")};
};

ArgRows RowsDefaults(const Region& r, const ArgForm& f) {
  ArgRows t{.along = DefaultFoldTile(f.space()).along};
  t.parts = kSplitRows.PartsOf(f.space().rows().max(), f.space().length().min());
  if (!SplitFits(r, f, t.parts)) t.parts = 1;
  return t;
}

Verdict RowsFit(const Region& r, const ArgForm& f, const ArgRows& t) {
  constexpr int64_t kLongRow = 512, kFewOutputs = 32;  // as of reductions
  const RowSpace& space = f.space();
  if (r.caps().runs_on_cpu) return Verdict::No("barriers are dear");
  if (space.within.empty() || space.length().max() < kLongRow) return Verdict::No("rows are short");
  if (!space.last() && space.rows().min() >= kFewOutputs)
    return Verdict::No("columns are reduced side by side");
  if (t.parts > 1 && space.length().max() < t.parts * t.along * t.workgroup)
    return Verdict::No("parts of rows are short");
  if (Verdict v = FoldTileFits(space, t.tile()); !v) return v;
  if (Verdict v = SplitFits(r, f, t.parts); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps(), WorkgroupFold::Shared(t.workgroup, f.axis.rule));
}

Program RowsEmit(const Region& r, const ArgForm& f, const ArgRows& t) {
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
    ScheduleOn<ArgRows, ArgFormOf, RowsDefaults, RowsFit, RowsEmit>("arg_reduce_rows");
const Schedule kArgReduceOutputs =
    ScheduleOn<ArgOutputs, ArgFormOf, OutputsDefaults, OutputsFit, OutputsEmit>(
        "arg_reduce_outputs");

}  // namespace forge::codegen
