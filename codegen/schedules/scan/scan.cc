// SPDX-License-Identifier: Apache-2.0
// Scans: an invocation for each row, or for some neighbouring ones, which reads it in order; on
// GPUs a workgroup for each row that is contiguous. Where that is too few, rows are split: a first
// launch combines the elements of each part, and the second begins each part with what the parts
// before it came to.
#include "ir/ops/reduction/scan.h"

#include "codegen/schedules/scan/fold_parameters.h"

namespace forge::codegen {
namespace {

using ir::Dim;

struct ScanForm {
  FoldedAxis axis;
  bool exclusive = false;
};

FoldKind KindOf(ir::ScanKind kind) {
  constexpr FoldKind kKinds[] = {FoldKind::kSum, FoldKind::kProd, FoldKind::kMax, FoldKind::kMin,
                                 FoldKind::kLogSumExp};  // in order of ir::ScanKind
  return kKinds[static_cast<size_t>(kind)];
}

std::optional<ScanForm> ScanFormOf(const Region& r) {
  const auto form = [&](const auto& op, bool with_index, bool exclusive) {
    const FoldRule rule{KindOf(op.kind), r.anchor_output().dtype(), with_index, true};
    return ScanForm{{rule, RowSpace(r, std::array{op.axis}), op.reverse}, exclusive};
  };
  if (const auto* op = r.AnchorAs<ir::Scan>()) return form(*op, false, op->exclusive);
  if (const auto* op = r.AnchorAs<ir::ScanWithIndex>()) return form(*op, true, false);
  return std::nullopt;
}

// Scans with an invocation for each part of a row, and with a workgroup for it.
constexpr SplitRule kSplitScanColumns{
    .few = 1 << 11, .enough = 1 << 14, .shortest = 1 << 12, .least = 64, .most = 512};
constexpr SplitRule kSplitScanRows{
    .few = 64, .enough = 512, .shortest = 1 << 14, .least = 1 << 11, .most = 256};

FoldSplit SplitScan(const Region& r, const ScanForm& f, const SplitRule& rule) {
  return {r, f.axis, rule, true};
}

// The results of a vector's elements, from what comes before it.
std::vector<Vals> Results(const ScanForm& f, Vals& so_far, const std::vector<Vals>& elements) {
  std::vector<Vals> results;
  for (const Vals& x : elements) {
    Vals with = f.axis.rule.Next(so_far, x);
    results.push_back(f.exclusive ? so_far : with);
    so_far = std::move(with);
  }
  return results;
}

// ---- an invocation for each row -----------------------------------------------------------------

FoldSplit SplitIntoColumns(const Region& r, const ScanForm& f) {
  return SplitScan(r, f, SplitFoldColumns(r.caps(), kSplitScanColumns));
}

FoldColumns ColumnsDefaults(const Region& r, const ScanForm& f) {
  return DefaultFoldColumns(SplitIntoColumns(r, f));
}

Verdict ColumnsFit(const Region& r, const ScanForm& f, const FoldColumns& t) {
  return FoldColumnsFit(SplitIntoColumns(r, f), t);
}

Launch ColumnsLaunch(const Region& r, const ScanForm& f, const FoldColumns& t, std::string name,
                     bool totals) {
  const FoldScratch scratch(f.axis, t.parts);
  const auto body = [&](Emission& m, const ir::Dims& at) {
    AxisWalk walk(m, f.axis, t.tile());
    const Dim row = at[1] * t.across;
    const AxisPart part(walk.Vectors(), at[0], t.parts);
    const Builder::Range range{m.e.Value(part.begin), m.e.Value(part.end), m.b.Int(1)};
    if (totals) return scratch.Store(m, at[0], row, walk.Fold(row, range));
    const Vals start =
        t.parts > 1 ? scratch.Gather(m, at[0], row, t.tile().across) : walk.Start(range.begin);
    m.b.For(range, start, [&](Val i, Vals so_far) {
      const Dim vector = m.e.Coordinate(i, LastIndex(walk.Vectors()));
      const std::vector<Vals> results = Results(f, so_far, walk.Load(row, vector));
      walk.Finish(row, vector, results);
      return so_far;
    });
  };
  return ForPlaces(r, std::move(name), t.workgroup,
                   {t.parts, FloorDiv(f.axis.space.rows(), t.across)}, body);
}

Program ColumnsEmit(const Region& r, const ScanForm& f, const FoldColumns& t) {
  const std::string name =
      fmt::format("scan_columns_{}x{}{}", t.across, t.along, SplitText(t.parts));
  if (t.parts == 1) return OneLaunch(ColumnsLaunch(r, f, t, name, false));
  return SplitProgram(
      ColumnsLaunch(r, f, t, name, true), FoldScratch(f.axis, t.parts).Bytes(), "_apply",
      [&](std::string apply) { return ColumnsLaunch(r, f, t, std::move(apply), false); });
}

// ---- a workgroup for each row -------------------------------------------------------------------

FoldRows RowsDefaults(const Region& r, const ScanForm& f) {
  return DefaultFoldRows(SplitScan(r, f, kSplitScanRows));
}

Verdict RowsFit(const Region& r, const ScanForm& f, const FoldRows& t) {
  constexpr int64_t kLongRow = 256;
  if (!f.axis.space.last()) return Verdict::No("rows lie side by side");
  return FoldRowsFit(SplitScan(r, f, kSplitScanRows), t, kLongRow);
}

// Tiles of one vector to an invocation, one after the other.
void EmitTiles(Emission& m, const ScanForm& f, const FoldRows& t, const Dim& row,
               const Builder::Range& range, const Vals& start) {
  AxisWalk walk(m, f.axis, t.tile());
  WorkgroupFold together(m, f.axis.rule);
  const FoldRule& rule = f.axis.rule;
  m.b.For(range, start, [&](Val i, const Vals& before) {
    const Val at = i + together.rank(), inside = at < range.end;
    const int64_t last = LastIndex(walk.Vectors());
    const Dim vector = m.e.Coordinate(min(at, static_cast<double>(last)), last);
    const std::vector<Vals> elements = walk.Load(row, vector);
    Vals mine = elements[0];
    for (size_t n = 1; n < elements.size(); ++n) mine = rule.Next(mine, elements[n]);
    const Vals none = walk.Start(at);
    for (size_t c = 0; c < mine.size(); ++c) mine[c] = select(inside, mine[c], none[c]);
    const auto scanned = together.Scan(mine);
    Vals so_far = rule.Combine(before, scanned.before);
    const std::vector<Vals> results = Results(f, so_far, elements);
    m.b.If(inside, [&] { walk.Finish(row, vector, results); });
    return rule.Combine(before, scanned.all);
  });
}

Launch RowsLaunch(const Region& r, const ScanForm& f, const FoldRows& t, std::string name,
                  bool totals) {
  const FoldScratch scratch(f.axis, t.parts);
  Emission m(r, std::move(name), {static_cast<uint32_t>(t.workgroup), 1, 1});
  m.Guarded(m.Workgroups(f.axis.space.rows() * t.parts), [&](const Dim& at) {
    const Dim row = FloorDiv(at, t.parts), which = Mod(at, t.parts);
    AxisWalk walk(m, f.axis, t.tile());
    const AxisPart part(walk.Vectors(), which, t.parts);
    const Val begin = m.e.Value(part.begin), end = m.e.Value(part.end);
    if (!totals) {
      const Vals start = t.parts > 1 ? scratch.Gather(m, which, row, 1) : walk.Start(begin);
      return EmitTiles(m, f, t, row, {begin, end, m.b.Int(t.workgroup)}, start);
    }
    const Val local = m.b.Builtin(BuiltinKind::kLocalX);
    const Vals mine = walk.Fold(row, {begin + local, end, m.b.Int(t.workgroup)});
    const Vals all = WorkgroupFold(m, f.axis.rule).Reduce(mine);
    m.b.If(local == 0.0, [&] { scratch.Store(m, which, row, all); });
  });
  return std::move(m).Take();
}

Program RowsEmit(const Region& r, const ScanForm& f, const FoldRows& t) {
  const std::string name =
      fmt::format("scan_rows_{}x{}{}", t.workgroup, t.along, SplitText(t.parts));
  if (t.parts == 1) return OneLaunch(RowsLaunch(r, f, t, name, false));
  return SplitProgram(
      RowsLaunch(r, f, t, name, true), FoldScratch(f.axis, t.parts).Bytes(), "_apply",
      [&](std::string apply) { return RowsLaunch(r, f, t, std::move(apply), false); });
}

}  // namespace

const Schedule kScanRows =
    ScheduleOn<FoldRows, ScanFormOf, RowsDefaults, RowsFit, RowsEmit>("scan_rows");
const Schedule kScanColumns =
    ScheduleOn<FoldColumns, ScanFormOf, ColumnsDefaults, ColumnsFit, ColumnsEmit>("scan_columns");

}  // namespace forge::codegen
