// SPDX-License-Identifier: Apache-2.0
// Reductions: an invocation for each output where there are many, a workgroup for each where rows
// are long, and two launches where few outputs have huge rows.
#include "ir/ops/reduce.h"

#include <bit>

#include "codegen/element.h"
#include "codegen/schedules/workgroup.h"
#include "ir/ops/axes.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// The operand's axes, told apart.
struct Shape {
  std::vector<bool> is_reduced;  // for each axis of the operand
  Dims kept, reduced;
  bool keep_dims;

  explicit Shape(const Region& r);
  Dim outputs() const { return ir::Product(kept); }
  Dim length() const { return ir::Product(reduced); }
  Dims InputIndex(const Dim& output, const Dim& element) const;
  Dims OutputIndex(const Dim& output) const;
};

Shape::Shape(const Region& r) {
  const auto& op = *r.AnchorAs<ir::Reduce>();
  const ir::Type& x = r.anchor_inputs()[0];
  keep_dims = op.keep_dims;
  is_reduced.assign(static_cast<size_t>(x.rank()), op.axes.empty());
  const auto axes = ir::NormalAxes(op.axes, x.rank());
  FORGE_CHECK(axes.ok());
  for (int64_t a : *axes) is_reduced[static_cast<size_t>(a)] = true;
  for (size_t i = 0; i < is_reduced.size(); ++i)
    (is_reduced[i] ? reduced : kept).push_back(x.shape()[i]);
}

Dims Shape::InputIndex(const Dim& output, const Dim& element) const {
  const Dims outer = Unflatten(output, kept), inner = Unflatten(element, reduced);
  Dims index;
  size_t o = 0, i = 0;
  for (bool is : is_reduced) index.push_back(is ? inner[i++] : outer[o++]);
  return index;
}

Dims Shape::OutputIndex(const Dim& output) const {
  const Dims outer = Unflatten(output, kept);
  Dims index;
  size_t o = 0;
  for (bool is : is_reduced) {
    if (!is) index.push_back(outer[o++]);
    if (is && keep_dims) index.emplace_back(0);
  }
  return index;
}

// The arithmetic of a kind on elements of a type.
struct Folder {
  ir::ReduceKind kind;
  DType dtype;

  explicit Folder(const Region& r)
      : kind(r.AnchorAs<ir::Reduce>()->kind), dtype(r.anchor_output().dtype()) {}
  Type type() const { return AccumulatorOf(dtype); }
  Val Start(Builder& b, int lanes) const {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    double v = 0;
    if (kind == ir::ReduceKind::kProd) v = 1;
    if (kind == ir::ReduceKind::kMax) v = -kInfinite;
    if (kind == ir::ReduceKind::kMin) v = kInfinite;
    return splat(LiteralOf(b, dtype, v), lanes);
  }
  // How parts are combined: means are sums until they are done.
  ReduceKind combined_as() const {
    switch (kind) {
      case ir::ReduceKind::kProd:
        return ReduceKind::kProd;
      case ir::ReduceKind::kMax:
        return ReduceKind::kMax;
      case ir::ReduceKind::kMin:
        return ReduceKind::kMin;
      case ir::ReduceKind::kSum:
      case ir::ReduceKind::kMean:
        break;
    }
    return ReduceKind::kSum;
  }
  Val Fold(Val a, Val x) const { return Combine(combined_as(), a, x); }
  Val Across(Val v) const { return CombineLanes(combined_as(), v); }
  Val Done(Val v, const Dim& length) const {
    if (kind == ir::ReduceKind::kMean) {
      Val n = convert(v.b->Scalar(length), dtype == DType::kF64 ? DType::kF64 : DType::kF32);
      return v / n;
    }
    return Wrap(dtype, v);
  }
};

bool Takes(const Region& r) { return r.AnchorAs<ir::Reduce>() != nullptr; }

// ---- one invocation for each output -------------------------------------------------------------

constexpr int64_t kSideBySide = 8;  // invocations of a CPU's subgroup

struct ReduceOutputs {
  int64_t workgroup = 64;
  int64_t outputs = 1;   // neighbours to an invocation
  int64_t elements = 1;  // of a row, loaded at once
  int64_t vectors = 1;   // of neighbours, to an invocation
  int64_t depth = 1;     // vectors of a row at once
  // The vectors of an invocation are this far apart, so that those of its neighbours lie between.
  int64_t apart() const { return vectors > 1 ? kSideBySide : 1; }
  int64_t block() const { return outputs * vectors * apart(); }  // neighbours that they fill
  static constexpr Field kFields[] = {
      FieldOf<&ReduceOutputs::workgroup>("workgroup", "Invocations in a workgroup.", "8|32|64|128"),
      FieldOf<&ReduceOutputs::outputs>("outputs", "Neighbours to an invocation.", "1|2|4"),
      FieldOf<&ReduceOutputs::elements>("elements", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&ReduceOutputs::vectors>("vectors", "Vectors of neighbours.", "1|2|4|8|16|32"),
      FieldOf<&ReduceOutputs::depth>("depth", "Vectors of a row at once.", "1|2")};
};

// From here on, invocations of a CPU each see more of a row.
constexpr int64_t kWideOutputs = 1024;

ReduceOutputs OutputsDefaults(const Region& r) {
  const Shape shape(r);
  ReduceOutputs t;
  const bool along_rows = !shape.is_reduced.empty() && shape.is_reduced.back();
  if (along_rows)
    t.elements = LanesFor(shape.reduced.back());
  else if (!shape.kept.empty())
    t.outputs = LanesFor(shape.kept.back());
  ReduceOutputs wide = t;
  wide.workgroup = kSideBySide;
  wide.vectors = VectorsOfPage(r.caps(), FloorDiv(shape.outputs(), t.outputs * kSideBySide), 8, 32);
  wide.depth = wide.vectors > 8 && shape.length().divisor() % 2 == 0 ? 2 : 1;
  if (r.caps().runs_on_cpu && !along_rows && shape.outputs().min() >= kWideOutputs &&
      shape.outputs().divisor() % wide.block() == 0)
    t = wide;
  return t;
}

Verdict OutputsFits(const Region& r, const ReduceOutputs& t) {
  const Shape shape(r);
  if (t.outputs > 1 && t.elements > 1) return Verdict::No("vectors run along one axis");
  if (shape.outputs().divisor() % t.block() != 0 ||
      shape.length().divisor() % (t.elements * t.depth) != 0)
    return Verdict::No("vectors do not divide the rows");
  return WorkgroupFits(t.workgroup, r.caps());
}

Program OutputsEmit(const Region& r, const ReduceOutputs& t) {
  const Shape shape(r);
  const Folder f(r);
  const int across = static_cast<int>(t.outputs), along = static_cast<int>(t.elements);
  const int lanes = std::max(across, along);
  Emission m(r, fmt::format("reduce_outputs_{}x{}", across * t.vectors, along),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  m.Guarded(m.Invocations(FloorDiv(shape.outputs(), across * t.vectors)), [&](const Dim& at) {
    const auto output = [&](size_t v) {
      const Dim strip = FloorDiv(at, t.apart()) * t.vectors + static_cast<int64_t>(v);
      return (strip * t.apart() + Mod(at, t.apart())) * across + m.e.Lane(across);
    };
    const Dim steps = FloorDiv(shape.length(), along * t.depth);
    const Vals start(static_cast<size_t>(t.vectors), f.Start(m.b, lanes));
    const auto step = [&](const Dim& i, Vals sums) {
      const Dim first = i * t.depth;
      for (int64_t part = 0; part < t.vectors * t.depth; ++part) {
        const auto v = static_cast<size_t>(part / t.depth);
        const Dim element = (first + part % t.depth) * along + m.e.Lane(along);
        sums[v] = f.Fold(sums[v], m.e.At(0, shape.InputIndex(output(v), element), lanes));
      }
      return sums;
    };
    Vals sums = m.Loop(steps, start, step);
    for (size_t v = 0; v < sums.size(); ++v) {
      if (along > 1) sums[v] = f.Across(sums[v]);
      m.e.Finish(shape.OutputIndex(output(v)), f.Done(sums[v], shape.length()), across);
    }
  });
  return OneLaunch(std::move(m).Take());
}

// ---- a workgroup for each row -------------------------------------------------------------------

struct ReduceRows {
  int64_t workgroup = 128;
  int64_t elements = 1;  // loaded at once
  int64_t parts = 1;     // of a row, each a workgroup's; their sums are combined by a second launch
  static constexpr Field kFields[] = {
      FieldOf<&ReduceRows::workgroup>("workgroup", "Invocations in a workgroup.", "64|128|256"),
      FieldOf<&ReduceRows::elements>("elements", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&ReduceRows::parts>("parts", "Workgroups to a row.", "1|16|64")};
};

// Rows shorter than this are left to one invocation each, unless there are too few of them.
constexpr int64_t kLongRow = 512, kHugeRow = 1 << 18, kFewOutputs = 32;

ReduceRows RowsDefaults(const Region& r) {
  const Shape shape(r);
  ReduceRows t;
  if (!shape.is_reduced.empty() && shape.is_reduced.back())
    t.elements = LanesFor(shape.reduced.back());
  if (shape.length().min() >= kHugeRow && shape.outputs().max() <= kFewOutputs) t.parts = 64;
  return t;
}

Verdict RowsFits(const Region& r, const ReduceRows& t) {
  const Shape shape(r);
  if (shape.is_reduced.empty() || shape.length().max() < kLongRow)
    return Verdict::No("rows are short");
  const bool along_rows = shape.is_reduced.back();
  if (!along_rows && shape.outputs().min() >= kFewOutputs)
    return Verdict::No("columns are reduced side by side");
  if (r.caps().runs_on_cpu && shape.outputs().min() >= kFewOutputs)
    return Verdict::No("barriers are dear and outputs are many");
  if (shape.length().divisor() % t.elements != 0)
    return Verdict::No("vectors do not divide the rows");
  if (t.parts > 1 && !shape.length().is_constant())
    return Verdict::No("the length of a row is not known");
  if (t.parts > 1 && r.caps().max_operands < 2) return Verdict::No("no room for scratch");
  return WorkgroupFits(
      t.workgroup, r.caps(),
      WorkgroupReduction::SharedBytes(t.workgroup, AccumulatorOf(r.anchor_output().dtype())));
}

// Vectors [begin, end) of the row that belongs to an output.
struct RowPart {
  Dim output;
  Val begin, end;
};

// A part of a row of vectors of `along` elements, folded by the workgroup.
Val FoldRow(Emission& m, const Shape& shape, const Folder& f, int along, const RowPart& part) {
  Builder& b = m.b;
  const int64_t size = m.launch.kernel.workgroup[0];
  const Dim last = FloorDiv(shape.length(), along);
  Val mine = b.For(
      {part.begin + b.Builtin(BuiltinKind::kLocalX), part.end, b.Int(size)}, {f.Start(b, along)},
      [&](Val i, Vals carried) {
        const Dim element = m.e.Coordinate(i, LastIndex(last)) * along + m.e.Lane(along);
        return Vals{f.Fold(carried[0], m.e.At(0, shape.InputIndex(part.output, element), along))};
      })[0];
  return WorkgroupReduction(m, f.type()).Reduce(f.combined_as(), f.Across(mine));
}

Launch EmitWhole(const Region& r, const ReduceRows& t, const std::string& name) {
  const Shape shape(r);
  const Folder f(r);
  const int along = static_cast<int>(t.elements);
  Emission m(r, name, {static_cast<uint32_t>(t.workgroup), 1, 1});
  m.Guarded(m.Workgroups(shape.outputs()), [&](const Dim& output) {
    Val all = FoldRow(m, shape, f, along,
                      {output, m.b.Int(0), m.b.Scalar(FloorDiv(shape.length(), along))});
    m.b.If(m.b.Builtin(BuiltinKind::kLocalX) == 0,
           [&] { m.e.Finish(shape.OutputIndex(output), f.Done(all, shape.length())); });
  });
  return std::move(m).Take();
}

Launch EmitParts(const Region& r, const ReduceRows& t, const std::string& name) {
  const Shape shape(r);
  const Folder f(r);
  const int along = static_cast<int>(t.elements);
  const int64_t vectors = shape.length().constant() / along;
  const int64_t each = (vectors + t.parts - 1) / t.parts;
  Emission m(r, name + "_parts", {static_cast<uint32_t>(t.workgroup), 1, 1});
  m.Guarded(m.Workgroups(shape.outputs() * t.parts), [&](const Dim& at) {
    Val part = m.e.Value(Mod(at, t.parts));
    Val begin = part * static_cast<double>(each);
    Val end = min(begin + static_cast<double>(each), static_cast<double>(vectors));
    Val all = FoldRow(m, shape, f, along, {FloorDiv(at, t.parts), begin, end});
    m.b.If(m.b.Builtin(BuiltinKind::kLocalX) == 0, [&] { m.e.StoreScratch(0, at, all); });
  });
  return std::move(m).Take();
}

Launch EmitCombine(const Region& r, const ReduceRows& t, const std::string& name) {
  const Shape shape(r);
  const Folder f(r);
  Emission m(r, name + "_combine", {64, 1, 1});
  m.Guarded(m.Invocations(shape.outputs()), [&](const Dim& output) {
    const Vals all = m.Loop(t.parts, {f.Start(m.b, 1)}, [&](const Dim& i, const Vals& carried) {
      return Vals{f.Fold(carried[0], m.e.LoadScratch(0, f.type(), output * t.parts + i))};
    });
    m.e.Finish(shape.OutputIndex(output), f.Done(all[0], shape.length()));
  });
  return std::move(m).Take();
}

Program RowsEmit(const Region& r, const ReduceRows& t) {
  const std::string name = fmt::format("reduce_rows_{}x{}", t.workgroup, t.elements);
  if (t.parts == 1) return OneLaunch(EmitWhole(r, t, name));
  Program out{.kernel = fmt::format("{}_split_{}", name, t.parts)};
  const Type type = Folder(r).type();
  out.scratch_bytes = {Shape(r).outputs().max() * t.parts * BitWidth(type.elem) / 8};
  out.launches.push_back(EmitParts(r, t, out.kernel));
  out.launches.push_back(EmitCombine(r, t, out.kernel));
  return out;
}

}  // namespace

const Schedule kReduceOutputs =
    ScheduleOf<ReduceOutputs, Takes, OutputsDefaults, OutputsFits, OutputsEmit>("reduce_outputs");
const Schedule kReduceRows =
    ScheduleOf<ReduceRows, Takes, RowsDefaults, RowsFits, RowsEmit>("reduce_rows");

}  // namespace forge::codegen
