// SPDX-License-Identifier: Apache-2.0
// Elements that change their place by what an operand says, and determinants.
#include <array>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/op/axes.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/reduction/arg_reduce.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::formats {
namespace {

// The first elements of each sequence in reverse, as many as its length says.
ir::Values BuildReverseSequence(OnnxNode& n) {
  const int64_t batch = n.Int("batch_axis", 1), time = n.Int("time_axis", 0);
  if (batch + time != 1 || batch * time != 0)
    n.Fail("the axes of batch and time are {} and {}, not 0 and 1", batch, time);
  if (!n.status().ok() || !HasRank(n, 0, 2, 64) || !HasRank(n, 1, 1, 1)) return {};
  const ir::Value x = n.in(0);
  const int64_t rank = x.type().rank();
  const ir::Dims shape = x.type().shape();
  ir::Dims along(static_cast<size_t>(rank), 1);
  along[static_cast<size_t>(batch)] = shape[static_cast<size_t>(batch)];
  const ir::Value length = ReshapedTo(n, Converted(n, n.in(1), DType::kI32), along);
  const ir::Value at = Places(n, shape[static_cast<size_t>(time)], time, rank);
  const ir::Value from = ir::select(at < length, length - 1.0 - at, at);
  const ir::Value index = n.fn()(ir::BroadcastTo{shape}, {from});
  return {n.fn()(ir::GatherElements{.axis = time}, {x, index})};
}

// Axes that are too long lose as much at either end, those too short gain zeros; the odd one is at
// the end.
ir::Values BuildCenterCropPad(OnnxNode& n) {
  const ir::Type x = n.type(0);
  std::vector<int64_t> axes = n.Ints("axes");
  const std::optional<ir::Dims> want = n.Contents(1);
  if (!want) n.Fail("its shape is not known before the model runs");
  if (!x.is_tensor()) n.Fail("the rank of its operand is not known before the model runs");
  if (!n.status().ok()) return {};
  if (!n.Has("axes"))
    for (int64_t a = 0; a < x.rank(); ++a) axes.push_back(a);
  if (axes.size() != want->size()) n.Fail("{} axes, {} extents", axes.size(), want->size());
  ir::Pad op;
  op.before.assign(x.shape().size(), 0);
  op.after = op.before;
  for (size_t i = 0; i < axes.size() && n.status().ok(); ++i) {
    const absl::StatusOr<int64_t> axis = ir::NormalAxis(axes[i], x.rank());
    if (!axis.ok()) n.Fail("{}", Message(axis.status()));
    if (!axis.ok()) return {};
    const auto at = static_cast<size_t>(*axis);
    const ir::Dim more = (*want)[i] - x.shape()[at];
    op.before[at] = ir::Max(ir::FloorDiv(more, 2), 0) - ir::Max(ir::FloorDiv(0 - more, 2), 0);
    op.after[at] = more - op.before[at];
  }
  if (!n.status().ok()) return {};
  return n.fn().Add(op, std::array{n.in(0)});
}

// One step of elimination of [b, m, m]: the row with the largest first element comes first.
// Returns that element with the sign of the exchange, [b]; leaves [b, m - 1, m - 1] in `matrix`.
ir::Value Eliminate(OnnxNode& n, ir::Value& matrix, const ir::Dim& batch, int64_t m) {
  const ir::Value column = Part(n, matrix, 2, 0, 1);
  const ir::Value largest =
      n.fn()(ir::Cast{DType::kI32},
             {n.fn()(ir::ArgReduce{.axis = 1}, {n.fn()(ir::Abs{}, {column})})});  // [b, 1, 1]
  const ir::Value index = n.fn()(ir::BroadcastTo{{batch, 1, m}}, {largest});
  const ir::Value row = n.fn()(ir::GatherElements{.axis = 1}, {matrix, index});  // [b, 1, m]
  const ir::Value pivot = Part(n, row, 2, 0, 1);
  const ir::Value sign = ir::select(largest > 0.0, -pivot, pivot);
  if (m > 1) {
    const ir::Value place = n.fn()(
        ir::Add{}, {Places(n, m - 1, 1, 3),
                    n.fn()(ir::Iota{.dtype = DType::kI32, .begin = 1, .step = 0, .count = 1}, {})});
    const ir::Value is_largest = n.fn()(ir::Equal{}, {place, largest});
    const ir::Value rest =
        n.fn()(ir::Select{}, {is_largest, Part(n, matrix, 1, 0, 1), Part(n, matrix, 1, 1, m)});
    const ir::Value divisor = ir::select(n.fn()(ir::Abs{}, {pivot}) > 0.0, pivot, 1.0);
    const ir::Value factor = Part(n, rest, 2, 0, 1) / divisor;
    matrix = Part(n, rest, 2, 1, m) - factor * Part(n, row, 2, 1, m);
  }
  return ReshapedTo(n, sign, {batch});
}

ir::Values BuildDet(OnnxNode& n) {
  constexpr int64_t kMostRows = 64;  // each is a step of some nodes
  if (!HasRank(n, 0, 2, 64)) return {};
  const ir::Dims shape = n.type(0).shape();
  const ir::Dim& rows = shape.back();
  if (!rows.is_constant() || rows.constant() < 1 || rows.constant() > kMostRows ||
      !(shape[shape.size() - 2] == rows)) {
    n.Fail("{} are no square matrices of 1 to {} rows", n.type(0).ToText(), kMostRows);
    return {};
  }
  const ir::Dims outer(shape.begin(), shape.end() - 2);
  const ir::Dim batch = ir::Product(outer);
  const int64_t m = rows.constant();
  ir::Value matrix = ReshapedTo(n, ir::Widened(n.in(0)), {batch, m, m}), det;
  for (int64_t k = 0; k < m; ++k) {
    const ir::Value pivot = Eliminate(n, matrix, batch, m - k);
    if (!n.fn().status().ok()) return {};
    det = det ? det * pivot : pivot;
  }
  return {ir::Narrowed(ReshapedTo(n, det, outer), n.type(0).dtype())};
}

constexpr OnnxOp kPlacementOps[] = {
    {"", "CenterCropPad", 18, 2, 2, BuildCenterCropPad},
    {"", "Det", 11, 1, 1, BuildDet},
    {"", "ReverseSequence", 10, 2, 2, BuildReverseSequence},
};

}  // namespace

std::span<const OnnxOp> PlacementOps() { return kPlacementOps; }

}  // namespace forge::formats
