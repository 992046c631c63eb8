// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/slice.h"

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"

namespace forge::ir {
namespace {

// One axis: elements begin, begin + step ..., `count` of them.
struct Cut {
  Dim begin = 0, count;
  int64_t step = 1;
};

// An index as Python takes it: negative counts from the end. Of a symbol's sign, as much is decided
// as is proven; the rest stays an expression.
Dim Wrapped(const Dim& at, const Dim& extent) {
  if (at.min() >= 0) return at;
  if (at.max() < 0) return at + extent;
  return at + extent * Max(0, Min(1, 0 - at));
}

Cut CutOf(const Dim& extent, const Dim& begin, const Dim& end, int64_t step) {
  const Dim low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const Dim last = Max(Min(Wrapped(end, extent), high), low);
  Dim first = Min(Wrapped(begin, extent), high);
  // A backward slice begins at an element, if there is one, and may end before the first.
  if (step > 0)
    first = Max(first, low);
  else if (first != high)
    first = Min(Max(first, 0), high);
  const Dim length = step > 0 ? CeilDiv(last - first, step) : CeilDiv(first - last, -step);
  return {first, Max(0, length), step};
}

absl::Status CheckLengths(const Slice& op) {
  const size_t n = op.begin.size();
  if (op.end.size() != n || (!op.axes.empty() && op.axes.size() != n) ||
      (!op.steps.empty() && op.steps.size() != n))
    return InvalidArgument("{} begins, {} ends, {} axes and {} steps do not match", n,
                           op.end.size(), op.axes.size(), op.steps.size());
  for (int64_t step : op.steps)
    if (step == 0 || step == INT64_MIN) return InvalidArgument("a step of {}", step);
  return absl::OkStatus();
}

// A cut for each axis of x.
absl::StatusOr<std::vector<Cut>> Cuts(const Slice& op, const Dims& shape) {
  FORGE_RETURN_IF_ERROR(CheckLengths(op));
  const int64_t rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> axes = op.axes;
  if (axes.empty())
    for (size_t i = 0; i < op.begin.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  FORGE_RETURN_IF_ERROR(NormalAxes(axes, rank).status());
  std::vector<Cut> cuts;
  for (const Dim& d : shape) cuts.push_back({.count = d});
  for (size_t i = 0; i < axes.size(); ++i) {
    FORGE_ASSIGN_OR_RETURN(const int64_t axis, NormalAxis(axes[i], rank));
    const size_t a = static_cast<size_t>(axis);
    cuts[a] = CutOf(shape[a], op.begin[i], op.end[i], op.steps.empty() ? 1 : op.steps[i]);
  }
  return cuts;
}

// Puts step - 1 zeros after each element along an axis.
Value SpreadOut(Value y, size_t axis, int64_t step) {
  Dims shape = y.type().shape();
  const Dim count = shape[axis];
  shape.insert(shape.begin() + static_cast<int64_t>(axis) + 1, 1);
  Pad pad{.before = Dims(shape.size(), 0), .after = Dims(shape.size(), 0)};
  pad.after[axis + 1] = step - 1;
  Dims flat = y.type().shape();
  flat[axis] = count * step;
  const Value apart = (*y.fn)(pad, {(*y.fn)(Reshape{.shape = std::move(shape)}, {y})});
  return (*y.fn)(Reshape{.shape = std::move(flat)}, {apart});
}

}  // namespace

absl::StatusOr<Types> Slice::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const std::vector<Cut> cuts, Cuts(*this, in[0].shape()));
  Dims shape;
  for (const Cut& c : cuts) shape.push_back(c.count);
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

IndexMap Slice::map(TypeSpan in, const Dims& at) const {
  const auto cuts = Cuts(*this, in[0].shape());
  FORGE_CHECK(cuts.ok());
  Dims index;
  for (size_t a = 0; a < at.size(); ++a)
    index.push_back((*cuts)[a].begin + at[a] * (*cuts)[a].step);
  return {.pieces = {{.operand = 0, .index = std::move(index)}}};
}

// Back to where the elements came from, forwards and with zeros between them.
Values Slice::gradient(const GradArgs& g) const {
  const Dims& shape = g.in[0].type().shape();
  const auto cuts = Cuts(*this, shape);
  if (!cuts.ok()) return g.fn.Fail(cuts.status()), Values{{}};
  Value y = g.dout[0];
  Pad pad;
  for (size_t a = 0; a < shape.size(); ++a) {
    Cut c = (*cuts)[a];
    if (c.step < 0) {
      const auto axis = static_cast<int64_t>(a);
      y = g.fn(Slice{{-1}, {INT64_MIN}, {axis}, {-1}}, {y});
      c = {c.begin + (c.count - 1) * c.step, c.count, -c.step};
    }
    if (c.step > 1) y = SpreadOut(y, a, c.step);
    const bool none = c.count == Dim(0);
    pad.before.push_back(none ? Dim(0) : c.begin);
    pad.after.push_back(none ? shape[a] : shape[a] - c.begin - c.count * c.step);
  }
  return {g.fn(pad, {y})};
}

Cases Slice::cases() {
  return {{Slice{{1}, {3}}, {"any[5,4]"}},
          {Slice{{1, 0}, {-1, INT64_MAX}, {2, 0}}, {"any[3,2,6]"}},
          {Slice{{-2}, {INT64_MAX}, {-1}}, {"any[2,5]"}},
          {Slice{{0, 1}, {7, 9}, {}, {3, 2}}, {"f32[7,9]"}},
          {Slice{{-1}, {INT64_MIN}, {0}, {-1}}, {"any[5,2]"}},
          {Slice{{4}, {0}, {1}, {-2}}, {"f32[2,6]"}},
          {Slice{{3}, {1}}, {"any[5]"}},
          {Slice{{-7}, {INT64_MIN}, {0}, {-1}}, {"any[5]"}},
          {Slice{{-7}, {INT64_MIN}, {0}, {-1}}, {"f32[0]"}},
          {Slice{{0}, {10}, {0}, {-1}}, {"f32[4]"}},
          {Slice{{0}, {2}}, {"f32[0,3]"}},
          {Slice{}, {"f32[2,3]"}},
          {.op = Slice{{0}, {INT64_MAX}, {1}, {2}}, .in = {"f32[64,4096,32]"}, .bench = true},
          {Slice{{0}, {1}, {2}}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
          {Slice{{0}, {1}, {0}, {0}}, {"f32[2,3]"}, "step of 0"},
          {Slice{{0, 0}, {1}}, {"f32[2,3]"}, "do not match"},
          {Slice{{0, 0}, {1, 1}, {0, -2}}, {"f32[2,3]"}, "given twice"}};
}

FORGE_DEFINE_OP(Slice)

}  // namespace forge::ir
