// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "formats/onnx/builders/families.h"
#include "ir/op/axes.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/shape_of.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::formats {
namespace {

// The shape of operand 0, which most movement ops need. Fails while its rank is unknown.
std::optional<ir::Dims> ShapeOf(OnnxNode& n) {
  const ir::Type& type = n.type(0);
  if (type.is_tensor()) return type.shape();
  n.Fail("the rank of its operand is not known before the model runs");
  return std::nullopt;
}

ir::Values ReshapeTo(OnnxNode& n, ir::Dims shape) {
  return {n.fn()(ir::Reshape{std::move(shape)}, {n.in(0)})};
}

// ---- reshape ----------------------------------------------------------------------------------

// The numbers of a Reshape as dimensions: 0 copies the operand's, -1 takes what is left.
std::optional<ir::Dims> ResolveShape(OnnxNode& n, const ir::Dims& from, ir::Dims to,
                                     bool allow_zero) {
  std::optional<size_t> open;
  for (size_t i = 0; i < to.size(); ++i) {
    if (!to[i].is_constant()) continue;
    const int64_t d = to[i].constant();
    if (d == 0 && !allow_zero) {
      if (i >= from.size()) {
        n.Fail("0 at {} copies a dimension that {} lacks", i, ir::ToText(from));
        return std::nullopt;
      }
      to[i] = from[i];
    } else if (d == -1 && !open) {
      open = i;
    } else if (d < 0) {
      n.Fail("{} in the shape {}", d == -1 ? "a second -1" : "a negative dimension",
             ir::ToText(to));
      return std::nullopt;
    }
  }
  if (!open) return to;
  // What both sides share need not be divided; a zero among it would hide the quotient.
  ir::Dim have = 1, want = 1;
  for (size_t i = 0; i < std::max(from.size(), to.size()); ++i) {
    const bool shared = i < from.size() && i < to.size() && i != *open && from[i] == to[i];
    if (i < from.size() && !shared) have = have * from[i];
    if (i < to.size() && !shared && i != *open) want = want * to[i];
  }
  if (want.is_constant() && want.constant() == 0) {
    n.Fail("-1 beside a 0 in the shape {}", ir::ToText(to));
    return std::nullopt;
  }
  to[*open] = FloorDiv(have, want);
  return to;
}

// The first `length` entries of the list `x`, zeros where it has fewer.
ir::Value FitLength(OnnxNode& n, ir::Value x, int64_t length) {
  const int64_t have = x.type().shape()[0].constant();
  if (have > length) return n.fn()(ir::Slice{.begin = {0}, .end = {length}}, {x});
  if (have < length) return n.fn()(ir::Pad{.before = {0}, .after = {length - have}}, {x});
  return x;
}

// How many numbers a shape has that is known only when the model runs.
std::optional<int64_t> LengthOfRuntimeShape(OnnxNode& n) {
  const ir::Type list = n.type(1);
  if (list.is_tensor() && list.rank() == 1 && list.is_constant()) return list.shape()[0].constant();
  n.Fail("the length of its shape is not known before the model runs");
  return std::nullopt;
}

// A shape that is known only when the model runs: the same rules as ResolveShape, in the graph, so
// that what arrives at the runtime-valued attribute is a plain shape.
ir::Values ReshapeLate(OnnxNode& n, bool allow_zero) {
  ir::Function& f = n.fn();
  if (!ShapeOf(n)) return {};
  const std::optional<int64_t> length = LengthOfRuntimeShape(n);
  if (!length) return {};
  const auto number = [&](int64_t v) {
    ir::HostValue scalar = ir::HostValue::Scalar(DType::kI64, 0);
    scalar.SetI64(0, v);
    return n.MakeConstant(scalar);
  };
  const ir::Value zero = number(0), one = number(1), have = f(ir::ShapeOf{}, {n.in(0)});
  ir::Value to = f(ir::Cast{DType::kI64}, {n.in(1)});
  const ir::Value open = f(ir::Equal{}, {to, number(-1)});
  if (!allow_zero) {
    const ir::Value copied = FitLength(n, have, *length);
    to = f(ir::Select{}, {f(ir::Equal{}, {to, zero}), copied, to});
  }
  const ir::Value total = f(ir::Reduce{.kind = ir::ReduceKind::kProd}, {have});
  const ir::Value known =
      f(ir::Reduce{.kind = ir::ReduceKind::kProd}, {f(ir::Select{}, {open, one, to})});
  to = f(ir::Select{}, {open, f(ir::Div{}, {total, known}), to});
  const std::array in = {n.in(0)};
  const ir::Function::RuntimeField runtime[] = {{"shape", to}};
  return f.AddRuntimeValued(ir::Reshape{}, in, runtime);
}

// ---- axes -------------------------------------------------------------------------------------

// The attribute or, since opset 13, the operand `axes`; nothing when it is not given.
std::optional<std::vector<int64_t>> AxesOf(OnnxNode& n) {
  if (n.since() < 13) {
    if (!n.Has("axes")) return std::nullopt;
    return n.Ints("axes");
  }
  if (!n.HasInput(1)) return std::nullopt;
  std::optional<std::vector<int64_t>> axes = n.ConstantInts(1);
  if (!axes) n.Fail("its axes are not known before the model runs");
  return axes;
}

std::vector<int64_t> Normalised(OnnxNode& n, std::span<const int64_t> axes, int64_t rank) {
  absl::StatusOr<std::vector<int64_t>> out = ir::NormalAxes(axes, rank);
  if (!out.ok()) n.Fail("{}", Message(out.status()));
  return out.ok() ? *std::move(out) : std::vector<int64_t>();
}

// ---- expand, pad ------------------------------------------------------------------------------

// A shape that is known only when the model runs: 1 in either shape takes the other's extent.
ir::Values ExpandLate(OnnxNode& n) {
  ir::Function& f = n.fn();
  const std::optional<ir::Dims> from = ShapeOf(n);
  const std::optional<int64_t> length = LengthOfRuntimeShape(n);
  if (!from || !length) return {};
  const auto have = static_cast<int64_t>(from->size());
  const int64_t want = *length, rank = std::max(have, want);
  const auto aligned = [&](ir::Value shape, int64_t length) {
    return f(ir::Pad{.before = {rank - length}, .after = {0}, .value = 1}, {shape});
  };
  const ir::Value x = aligned(f(ir::ShapeOf{}, {n.in(0)}), have);
  const ir::Value to = aligned(f(ir::Cast{DType::kI64}, {n.in(1)}), want);
  const ir::Value one = f(ir::Fill{.value = 1, .dtype = DType::kI64}, {});
  const ir::Value shape = f(ir::Select{}, {f(ir::Equal{}, {to, one}), x, to});
  const std::array in = {n.in(0)};
  const ir::Function::RuntimeField runtime[] = {{"shape", shape}};
  return f.AddRuntimeValued(ir::BroadcastTo{}, in, runtime);
}

std::optional<ir::PadMode> PadModeOf(OnnxNode& n) {
  const std::string mode = n.String("mode", "constant");
  if (mode == "constant") return ir::PadMode::kConstant;
  if (mode == "reflect") return ir::PadMode::kReflect;
  if (mode == "edge") return ir::PadMode::kEdge;
  if (mode == "wrap" && n.since() >= 18) return ir::PadMode::kWrap;
  n.Fail("unknown mode '{}'", mode);
  return std::nullopt;
}

// `widths` has what is put before each of `axes`, then what is put after.
ir::Values PadBy(OnnxNode& n, const ir::Dims& widths, std::span<const int64_t> axes,
                 const Number& value) {
  const std::optional<ir::Dims> shape = ShapeOf(n);
  const std::optional<ir::PadMode> mode = PadModeOf(n);
  if (!shape || !mode) return {};
  if (widths.size() != 2 * axes.size()) {
    n.Fail("{} widths for {} axes", widths.size(), axes.size());
    return {};
  }
  ir::Pad op{.before = ir::Dims(shape->size(), 0), .after = ir::Dims(shape->size(), 0)};
  op.value = value;
  op.mode = *mode;
  for (size_t i = 0; i < axes.size(); ++i) {
    op.before[static_cast<size_t>(axes[i])] = widths[i];
    op.after[static_cast<size_t>(axes[i])] = widths[axes.size() + i];
  }
  return n.fn().Add(op, std::array{n.in(0)});
}

std::vector<int64_t> AllAxes(OnnxNode& n) {
  const ir::Type& type = n.type(0);
  std::vector<int64_t> all(type.is_tensor() ? static_cast<size_t>(type.rank()) : 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The axes that operand 3 names, in its order.
std::vector<int64_t> PaddedAxes(OnnxNode& n) {
  if (!n.HasInput(3)) return AllAxes(n);
  std::optional<std::vector<int64_t>> axes = n.ConstantInts(3);
  if (!axes) {
    n.Fail("its axes are not known before the model runs");
    return {};
  }
  const int64_t rank = n.type(0).is_tensor() ? n.type(0).rank() : 0;
  Normalised(n, *axes, rank);  // refuses what is outside or given twice
  for (int64_t& a : *axes) a = a < 0 ? a + rank : a;
  return *axes;
}

// ---- slice ------------------------------------------------------------------------------------

// ONNX has "to the very first" as a number far below -extent, which clamps; the op's bounds do the
// same. Bounds that are computed from data are runtime-valued.
ir::Values SliceBy(OnnxNode& n, ir::Slice op) {
  const std::optional<ir::Dims> begin = n.Contents(1), end = n.Contents(2);
  std::vector<ir::Function::RuntimeField> runtime;
  if (begin) op.begin = *begin;
  if (!begin) runtime.push_back({"begin", n.in(1)});
  if (end) op.end = *end;
  if (!end) runtime.push_back({"end", n.in(2)});
  const std::array in = {n.in(0)};
  return runtime.empty() ? n.fn().Add(op, in) : n.fn().AddRuntimeValued(op, in, runtime);
}

ir::Values BuildConcat(OnnxNode& n) {
  if (n.since() >= 4 && !n.Has("axis")) n.Fail("attribute 'axis' is missing");
  const int64_t axis = n.Int("axis", 1);
  ir::Values in;
  for (size_t i = 0; i < n.inputs(); ++i)
    if (n.HasInput(i)) in.push_back(n.in(i));
  return n.fn().Add(ir::Concat{axis}, in);
}

ir::Values BuildExpand(OnnxNode& n) {
  const std::optional<ir::Dims> to = n.Contents(1);
  if (!to) return ExpandLate(n);
  const std::optional<ir::Dims> from = ShapeOf(n);
  if (!from) return {};
  absl::StatusOr<ir::Dims> shape = ir::BroadcastShapes(std::array{&*from, &*to});
  if (!shape.ok()) {
    n.Fail("{}", Message(shape.status()));
    return {};
  }
  return n.fn().Add(ir::BroadcastTo{*std::move(shape)}, std::array{n.in(0)});
}

ir::Values BuildPad2(OnnxNode& n) {
  const std::vector<int64_t> widths = n.Ints(n.since() < 2 ? "paddings" : "pads");
  return PadBy(n, {widths.begin(), widths.end()}, AllAxes(n), n.Float("value", 0));
}

ir::Values BuildPad11(OnnxNode& n) {
  const std::optional<ir::Dims> widths = n.Contents(1);
  const std::optional<Number> value = n.HasInput(2) ? n.ConstantNumber(2) : Number();
  if (!widths || !value)
    n.Fail("its {} is not known before the model runs", widths ? "value" : "list of widths");
  const std::vector<int64_t> axes = PaddedAxes(n);
  return n.status().ok() ? PadBy(n, *widths, axes, *value) : ir::Values();
}

ir::Values BuildFlatten(OnnxNode& n) {
  const std::optional<ir::Dims> shape = ShapeOf(n);
  if (!shape) return {};
  const auto rank = static_cast<int64_t>(shape->size());
  int64_t axis = n.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    n.Fail("axis {} is outside rank {}", axis, rank);
    return {};
  }
  if (axis < 0) axis += rank;
  const std::span<const ir::Dim> all(*shape);
  return ReshapeTo(n, {ir::Product(all.first(static_cast<size_t>(axis))),
                       ir::Product(all.subspan(static_cast<size_t>(axis)))});
}

ir::Values BuildReshape1(OnnxNode& n) {
  const std::vector<int64_t> to = n.Ints("shape");
  const std::optional<ir::Dims> from = ShapeOf(n);
  if (!from) return {};
  std::optional<ir::Dims> shape = ResolveShape(n, *from, {to.begin(), to.end()}, false);
  return shape ? ReshapeTo(n, *std::move(shape)) : ir::Values();
}

ir::Values BuildReshape5(OnnxNode& n) {
  const bool allow_zero = n.Flag("allowzero");
  std::optional<ir::Dims> to = n.Contents(1);
  if (!to) return ReshapeLate(n, allow_zero);
  const std::optional<ir::Dims> from = ShapeOf(n);
  if (!from) return {};
  std::optional<ir::Dims> shape = ResolveShape(n, *from, *std::move(to), allow_zero);
  return shape ? ReshapeTo(n, *std::move(shape)) : ir::Values();
}

ir::Values BuildShape(OnnxNode& n) {
  const bool whole = !n.Has("start") && !n.Has("end");
  const int64_t begin = n.Int64("start", 0), end = n.Int64("end", INT64_MAX);
  const ir::Value shape = n.fn()(ir::ShapeOf{}, {n.in(0)});
  if (whole) return {shape};
  return {n.fn()(ir::Slice{.begin = {begin}, .end = {end}}, {shape})};
}

ir::Values BuildSlice1(OnnxNode& n) {
  const std::vector<int64_t> begin = n.Ints("starts"), end = n.Ints("ends");
  const ir::Slice op{.begin = {begin.begin(), begin.end()},
                     .end = {end.begin(), end.end()},
                     .axes = n.Ints("axes")};
  return n.fn().Add(op, std::array{n.in(0)});
}

ir::Values BuildSlice10(OnnxNode& n) {
  ir::Slice op;
  for (size_t i : {size_t{3}, size_t{4}}) {
    if (!n.HasInput(i)) continue;
    const std::optional<std::vector<int64_t>> list = n.ConstantInts(i);
    if (!list) n.Fail("its {} are not known before the model runs", i == 3 ? "axes" : "steps");
    (i == 3 ? op.axes : op.steps) = list.value_or(std::vector<int64_t>());
  }
  return SliceBy(n, std::move(op));
}

ir::Values BuildSqueeze(OnnxNode& n) {
  const std::optional<ir::Dims> shape = ShapeOf(n);
  const std::optional<std::vector<int64_t>> given = AxesOf(n);
  if (!shape || !n.status().ok()) return {};
  std::vector<int64_t> axes;
  if (given) axes = Normalised(n, *given, static_cast<int64_t>(shape->size()));
  ir::Dims out;
  for (size_t i = 0; i < shape->size(); ++i) {
    const ir::Dim& d = (*shape)[i];
    const bool one = d.is_constant() && d.constant() == 1;
    const bool named = std::ranges::binary_search(axes, static_cast<int64_t>(i));
    if (named && d.is_constant() && !one) n.Fail("axis {} has extent {}, not 1", i, d.constant());
    if (!given && !d.is_constant())
      n.Fail("whether dimension {} is 1 is not known before the model runs", d.ToText());
    if (given ? !named : !one) out.push_back(d);
  }
  return ReshapeTo(n, std::move(out));
}

ir::Values BuildTranspose(OnnxNode& n) {
  std::vector<int64_t> order = n.Ints("perm");
  if (!n.Has("perm")) {
    const std::optional<ir::Dims> shape = ShapeOf(n);
    if (!shape) return {};
    for (size_t i = shape->size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  return {n.fn()(ir::Transpose{std::move(order)}, {n.in(0)})};
}

ir::Values BuildUnsqueeze(OnnxNode& n) {
  const std::optional<ir::Dims> shape = ShapeOf(n);
  const std::optional<std::vector<int64_t>> given = AxesOf(n);
  if (!given) n.Fail("attribute 'axes' is missing");
  if (!shape || !n.status().ok()) return {};
  const size_t rank = shape->size() + given->size();
  const std::vector<int64_t> axes = Normalised(n, *given, static_cast<int64_t>(rank));
  ir::Dims out;
  auto next = shape->begin();
  for (size_t i = 0; i < rank && n.status().ok(); ++i) {
    const bool added = std::ranges::binary_search(axes, static_cast<int64_t>(i));
    out.push_back(added ? ir::Dim(1) : *next++);
  }
  return ReshapeTo(n, std::move(out));
}

constexpr OnnxOp kMovementOps[] = {
    {"", "Concat", 1, 1, kAnyNumber, BuildConcat},
    {"", "Concat", 4, 1, kAnyNumber, BuildConcat},
    {"", "Expand", 8, 2, 2, BuildExpand},
    {"", "Flatten", 1, 1, 1, BuildFlatten},
    {"", "Pad", 1, 1, 1, BuildPad2},
    {"", "Pad", 2, 1, 1, BuildPad2},
    {"", "Pad", 11, 2, 3, BuildPad11},
    {"", "Pad", 18, 2, 4, BuildPad11},
    {"", "Reshape", 1, 1, 1, BuildReshape1},
    {"", "Reshape", 5, 2, 2, BuildReshape5},
    {"", "Shape", 1, 1, 1, BuildShape},
    {"", "Slice", 1, 1, 1, BuildSlice1},
    {"", "Slice", 10, 3, 5, BuildSlice10},
    {"", "Squeeze", 1, 1, 1, BuildSqueeze},
    {"", "Squeeze", 13, 1, 2, BuildSqueeze},
    {"", "Transpose", 1, 1, 1, BuildTranspose},
    {"", "Unsqueeze", 1, 1, 1, BuildUnsqueeze},
    {"", "Unsqueeze", 13, 2, 2, BuildUnsqueeze},
};

}  // namespace

std::span<const OnnxOp> MovementOps() { return kMovementOps; }

}  // namespace forge::formats
