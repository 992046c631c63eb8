// SPDX-License-Identifier: Apache-2.0
// Reductions: an invocation for each output where there are many, a workgroup for each where rows
// are long. Where that is too few for rows so long, parts of rows go to scratch, and a second
// launch combines them.
#include "codegen/schedules/rows/rows.h"
#include "codegen/schedules/split.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// All of the operand's axes where the op names none.
std::vector<int64_t> AxesOf(const Region& r) {
  std::vector<int64_t> axes = r.AnchorAs<ir::Reduce>()->axes;
  if (axes.empty())
    for (int64_t a = 0; a < r.anchor_inputs()[0].rank(); ++a) axes.push_back(a);
  return axes;
}

// Rows of the operand, and what becomes of their elements.
struct Reduction : ReduceRule {
  explicit Reduction(const Region& r)
      : ReduceRule{r.AnchorAs<ir::Reduce>()->kind, r.anchor_output().dtype()},
        keep_dims(r.AnchorAs<ir::Reduce>()->keep_dims),
        space(r, AxesOf(r)) {}
  // Hands the result of an output over, or of `lanes` neighbours.
  void Finish(Emission& m, const Dim& output, Val all, int lanes = 1) const;

  bool keep_dims;
  RowSpace space;
};

std::optional<Reduction> ReductionOf(const Region& r) {
  if (r.AnchorAs<ir::Reduce>() == nullptr) return std::nullopt;
  return Reduction(r);
}

void Reduction::Finish(Emission& m, const Dim& output, Val all, int lanes) const {
  m.e.Finish(keep_dims ? space.Index(output, 0) : Unflatten(output, space.outer),
             Done(all, space.length()), lanes);
}

// Parts of row `output` lie side by side in scratch.
int64_t ScratchBytes(const Reduction& f, int64_t parts) {
  return (f.space.rows() * (parts * ElementBytes(f.type()))).max();
}

Launch EmitCombine(const Region& r, const Reduction& f, int64_t parts, std::string name) {
  constexpr int64_t kThreads = 64;
  Emission m(r, std::move(name), {kThreads, 1, 1});
  Builder& b = m.b;
  m.Guarded(m.Workgroups(f.space.rows()), [&](const Dim& at) {
    const Val local = b.Builtin(BuiltinKind::kLocalX);
    const Vals mine = b.For({local, b.Int(parts), b.Int(kThreads)}, {f.Start(b, 1)},
                            [&](Val i, const Vals& carried) {
                              const Dim place = at * parts + m.e.Coordinate(i, parts - 1);
                              return Vals{f.Fold(carried[0], m.e.LoadScratch(0, f.type(), place))};
                            });
    const Val all = WorkgroupReduction(m, f.type()).Reduce(f.kind(), mine[0]);
    b.If(local == 0, [&] { f.Finish(m, at, all); });
  });
  return std::move(m).Take();
}

// The first launch alone where rows are whole.
Program ProgramOf(const Region& r, const Reduction& f, int64_t parts, Launch fold) {
  if (parts == 1) return OneLaunch(std::move(fold));
  return SplitProgram(std::move(fold), ScratchBytes(f, parts), "_combine",
                      [&](std::string name) { return EmitCombine(r, f, parts, std::move(name)); });
}

// ---- one invocation for each output -------------------------------------------------------------

constexpr int64_t kSideBySide = 8;  // invocations of a CPU's subgroup

struct ReduceOutputs {
  int64_t workgroup = 64;
  int64_t outputs = 1;   // neighbours to an invocation
  int64_t elements = 1;  // of a row, loaded at once
  int64_t vectors = 1;   // of neighbours, to an invocation
  int64_t depth = 1;     // vectors of a row at once
  int64_t parts = 1;     // of a row, each an invocation's
  // The vectors of an invocation are this far apart, so that those of its neighbours lie between.
  int64_t apart() const { return vectors > 1 ? kSideBySide : 1; }
  int64_t block() const { return outputs * vectors * apart(); }  // neighbours that they fill
  static constexpr Field kFields[] = {
      FieldOf<&ReduceOutputs::workgroup>("workgroup", "Invocations in a workgroup.", "8|32|64|128"),
      FieldOf<&ReduceOutputs::outputs>("outputs", "Neighbours to an invocation.", "1|2|4"),
      FieldOf<&ReduceOutputs::elements>("elements", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&ReduceOutputs::vectors>("vectors", "Vectors of neighbours.", "1|2|4|8|16|32"),
      FieldOf<&ReduceOutputs::depth>("depth", "Vectors of a row at once.", "1|2"),
      FieldOf<&ReduceOutputs::parts>("parts", "Invocations to a row.", "1|16|128")};
};

// From here on, invocations of a CPU each see more of a row.
constexpr int64_t kWideOutputs = 1024;

ReduceOutputs OutputsDefaults(const Region& r, const Reduction& f) {
  const RowSpace& space = f.space;
  ReduceOutputs t;
  (space.last() ? t.elements : t.outputs) = space.lanes();
  ReduceOutputs wide = t;
  wide.workgroup = kSideBySide;
  wide.vectors = VectorsOfPage(r.caps(), FloorDiv(space.rows(), t.outputs * kSideBySide), 8, 32);
  wide.depth = wide.vectors > 8 && space.length().divisor() % 2 == 0 ? 2 : 1;
  if (r.caps().runs_on_cpu && !space.last() && space.rows().min() >= kWideOutputs &&
      space.rows().divisor() % wide.block() == 0)
    t = wide;
  const int64_t whole = space.rows().max() / t.outputs, steps = space.length().min() / t.elements;
  if (r.caps().runs_on_cpu) return t;
  t.parts = kSplitOutputs.PartsOf(whole, steps);
  if (!ScratchFits(r, ScratchBytes(f, t.parts))) t.parts = 1;
  return t;
}

Verdict OutputsFits(const Region& r, const Reduction& f, const ReduceOutputs& t) {
  if (t.outputs > 1 && t.elements > 1) return Verdict::No("vectors run along one axis");
  if (f.space.rows().divisor() % t.block() != 0 ||
      f.space.length().divisor() % (t.elements * t.depth) != 0)
    return Verdict::No("vectors do not divide the rows");
  if (t.parts > 1 && f.space.length().max() < t.parts * t.elements * t.depth)
    return Verdict::No("rows are short");
  if (Verdict v = PartsFit(r, t.parts, ScratchBytes(f, t.parts)); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps());
}

Program OutputsEmit(const Region& r, const Reduction& f, const ReduceOutputs& t) {
  const int across = static_cast<int>(t.outputs), along = static_cast<int>(t.elements);
  const int lanes = std::max(across, along);
  const auto body = [&](Emission& m, const Dim& share, const Dim& at) {
    const auto first_output = [&](size_t v) {
      const Dim strip = FloorDiv(at, t.apart()) * t.vectors + static_cast<int64_t>(v);
      return (strip * t.apart() + Mod(at, t.apart())) * across;
    };
    const auto output = [&](size_t v) { return first_output(v) + m.e.Lane(across); };
    const Dim steps = FloorDiv(f.space.length(), along * t.depth);
    const AxisPart part(steps, share, t.parts);
    const Vals start(static_cast<size_t>(t.vectors), f.Start(m.b, lanes));
    const Builder::Range range{m.e.Value(part.begin), m.e.Value(part.end), m.b.Int(1)};
    const Vals all = m.b.For(range, start, [&](Val i, Vals sums) {
      const Dim first = m.e.Coordinate(i, LastIndex(steps)) * t.depth;
      for (int64_t n = 0; n < t.vectors * t.depth; ++n) {
        const auto v = static_cast<size_t>(n / t.depth);
        const Dim element = (first + n % t.depth) * along + m.e.Lane(along);
        sums[v] = f.Fold(sums[v], m.e.At(0, f.space.Index(output(v), element), lanes));
      }
      return sums;
    });
    for (size_t v = 0; v < all.size(); ++v) {
      const Val mine = along > 1 ? CombineLanes(f.kind(), all[v]) : all[v];
      if (t.parts == 1) {
        f.Finish(m, output(v), mine, across);
        continue;
      }
      Vals each;
      Unpack(mine, each);
      for (size_t c = 0; c < each.size(); ++c)
        m.e.StoreScratch(0, (first_output(v) + static_cast<int64_t>(c)) * t.parts + share, each[c]);
    }
  };
  return ProgramOf(
      r, f, t.parts,
      ForPlaces(
          r, fmt::format("reduce_outputs_{}x{}{}", across * t.vectors, along, SplitText(t.parts)),
          t.workgroup, {t.parts, FloorDiv(f.space.rows(), across * t.vectors)},
          [&](Emission& m, const Dims& at) { body(m, at[0], at[1]); }));
}

// ---- a workgroup for each row -------------------------------------------------------------------

struct ReduceRows {
  int64_t workgroup = 128;
  int64_t elements = 1;  // loaded at once
  int64_t parts = 1;     // of a row, each a workgroup's
  static constexpr Field kFields[] = {
      FieldOf<&ReduceRows::workgroup>("workgroup", "Invocations in a workgroup.", "64|128|256"),
      FieldOf<&ReduceRows::elements>("elements", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&ReduceRows::parts>("parts", "Workgroups to a row.", "1|16|64")};
};

// Rows shorter than this are left to one invocation each, unless there are too few of them.
constexpr int64_t kLongFoldedRow = 512, kFewOutputs = 32;

ReduceRows RowsDefaults(const Region&, const Reduction& f) {
  ReduceRows t;
  if (f.space.last()) t.elements = f.space.lanes();
  t.parts = kSplitRows.PartsOf(f.space.rows().max(), f.space.length().min());
  return t;
}

Verdict RowsFits(const Region& r, const Reduction& f, const ReduceRows& t) {
  const RowSpace& space = f.space;
  if (space.within.empty() || space.length().max() < kLongFoldedRow)
    return Verdict::No("rows are short");
  const bool many = space.rows().min() >= kFewOutputs;
  if (!space.last() && many) return Verdict::No("columns are reduced side by side");
  if (r.caps().runs_on_cpu && many) return Verdict::No("barriers are dear and outputs are many");
  if (space.length().divisor() % t.elements != 0)
    return Verdict::No("vectors do not divide the rows");
  if (Verdict v = PartsFit(r, t.parts, ScratchBytes(f, t.parts)); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps(), WorkgroupReduction::Shared(t.workgroup, f.type()));
}

// Each workgroup folds a row, or one of its parts into scratch.
Launch EmitFold(const Region& r, const Reduction& f, const ReduceRows& t, std::string name) {
  const int along = static_cast<int>(t.elements);
  const Dim vectors = FloorDiv(f.space.length(), along);
  Emission m(r, std::move(name), {static_cast<uint32_t>(t.workgroup), 1, 1});
  Builder& b = m.b;
  m.Guarded(m.Workgroups(f.space.rows() * t.parts), [&](const Dim& at) {
    const Dim output = FloorDiv(at, t.parts);
    const AxisPart part(vectors, Mod(at, t.parts), t.parts);
    const Val begin = m.e.Value(part.begin) + b.Builtin(BuiltinKind::kLocalX);
    const Vals mine =
        b.For({begin, m.e.Value(part.end), b.Int(t.workgroup)}, {f.Start(b, along)},
              [&](Val i, const Vals& carried) {
                const Dim element = m.e.Coordinate(i, LastIndex(vectors)) * along + m.e.Lane(along);
                return Vals{f.Fold(carried[0], m.e.At(0, f.space.Index(output, element), along))};
              });
    const Val all =
        WorkgroupReduction(m, f.type()).Reduce(f.kind(), CombineLanes(f.kind(), mine[0]));
    b.If(b.Builtin(BuiltinKind::kLocalX) == 0, [&] {
      if (t.parts > 1)
        m.e.StoreScratch(0, at, all);
      else
        f.Finish(m, output, all);
    });
  });
  return std::move(m).Take();
}

Program RowsEmit(const Region& r, const Reduction& f, const ReduceRows& t) {
  return ProgramOf(
      r, f, t.parts,
      EmitFold(r, f, t,
               fmt::format("reduce_rows_{}x{}{}", t.workgroup, t.elements, SplitText(t.parts))));
}

}  // namespace

const Schedule kReduceOutputs =
    ScheduleOn<ReduceOutputs, ReductionOf, OutputsDefaults, OutputsFits, OutputsEmit>(
        "reduce_outputs");
const Schedule kReduceRows =
    ScheduleOn<ReduceRows, ReductionOf, RowsDefaults, RowsFits, RowsEmit>("reduce_rows");

}  // namespace forge::codegen
