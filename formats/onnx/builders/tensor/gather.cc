// SPDX-License-Identifier: Apache-2.0
// Operators whose indices are data, and the one that makes indices.
#include "ir/ops/movement/gather.h"

#include <cmath>

#include "formats/onnx/builders/families.h"
#include "ir/op/axes.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"

namespace forge::formats {
namespace {

// Fails where an index that the file states lies outside.
void CheckIndices(OnnxNode& n, const ir::HostValue& indices, const ir::Dim& extent) {
  if (!extent.is_constant() || !Has(kIntTypes, indices.dtype())) return;
  const int64_t size = extent.constant();
  for (int64_t i = 0; i < indices.elements(); ++i)
    if (indices.i64(i) < -size || indices.i64(i) >= size)
      return n.Fail("index {} is outside an axis of extent {}", indices.i64(i), size);
}

// start + i * delta in floats.
ir::Values FloatRange(OnnxNode& n, DType dtype) {
  const std::optional<Number> bounds[] = {n.ConstantNumber(0), n.ConstantNumber(1),
                                          n.ConstantNumber(2)};
  const bool known = bounds[0] && bounds[1] && bounds[2];
  if (!known || bounds[2]->f64() == 0) {
    n.Fail("its bounds are floats that the file does not state, or its delta is 0");
    return {};
  }
  const double start = bounds[0]->f64(), limit = bounds[1]->f64(), delta = bounds[2]->f64();
  const double count = std::ceil((limit - start) / delta);
  constexpr double kMost = 0x1p31;
  if (!(count < kMost)) {
    n.Fail("a range from {} to {} by {}", start, limit, delta);
    return {};
  }
  const auto whole = static_cast<int64_t>(std::fmax(count, 0));
  const ir::Value i = n.fn()(ir::Iota{.dtype = dtype, .count = whole}, {});
  return {i * delta + start};
}

// Bounds that are known only when the model runs.
ir::Values RangeLate(OnnxNode& n, DType dtype, int64_t step) {
  const ir::Value begin = n.in(0), end = n.in(1);
  const ir::Value way = step > 0 ? end - begin : begin - end;
  const double size = static_cast<double>(step > 0 ? step : -step);
  const ir::Value count = max((way + (size - 1)) / size, 0.0);
  const ir::Function::RuntimeField runtime[] = {{"begin", begin}, {"count", count}};
  return n.fn().AddRuntimeValued(ir::Iota{.dtype = dtype, .step = step}, {}, runtime);
}

}  // namespace

void CheckIndicesAlong(OnnxNode& n, int64_t axis) {
  const std::optional<ir::HostValue> indices = n.Constant(1);
  const ir::Type& x = n.type(0);
  if (!indices || !x.is_tensor()) return;
  const absl::StatusOr<int64_t> along = ir::NormalAxis(axis, x.rank());
  if (along.ok()) CheckIndices(n, *indices, x.shape()[static_cast<size_t>(*along)]);
}

namespace {

ir::Values BuildGather(OnnxNode& n) {
  const int64_t axis = n.Int("axis", 0);
  CheckIndicesAlong(n, axis);
  return n.fn().Add(ir::Gather{.axis = axis}, std::array{n.in(0), n.in(1)});
}

ir::Values BuildGatherElements(OnnxNode& n) {
  const int64_t axis = n.Int("axis", 0);
  CheckIndicesAlong(n, axis);
  return n.fn().Add(ir::GatherElements{.axis = axis}, std::array{n.in(0), n.in(1)});
}

ir::Values BuildGatherNd(OnnxNode& n) {
  const ir::GatherNd op{.batch_dims = n.since() >= 12 ? n.Int("batch_dims", 0) : 0};
  return n.fn().Add(op, std::array{n.in(0), n.in(1)});
}

ir::Values BuildRange(OnnxNode& n) {
  const DType dtype = n.type(0).dtype();
  if (Has(kFloatTypes, dtype)) return FloatRange(n, dtype);
  const std::optional<std::vector<int64_t>> delta = n.ConstantInts(2);
  if (!delta || delta->size() != 1 || delta->front() == 0 || delta->front() == INT64_MIN) {
    n.Fail("its delta is 0, or not known before the model runs");
    return {};
  }
  const int64_t step = delta->front();
  const std::optional<ir::Dims> start = n.Contents(0), limit = n.Contents(1);
  if (!start || !limit) return RangeLate(n, dtype, step);
  if (start->size() != 1 || limit->size() != 1) {
    n.Fail("its bounds are not scalars");
    return {};
  }
  const ir::Dim &begin = start->front(), &end = limit->front();
  const ir::Dim count = step > 0 ? CeilDiv(end - begin, step) : CeilDiv(begin - end, -step);
  return {
      n.fn()(ir::Iota{.dtype = dtype, .begin = begin, .step = step, .count = Max(0, count)}, {})};
}

constexpr OnnxOp kGatherOps[] = {
    {"", "Gather", 1, 2, 2, BuildGather},
    {"", "GatherElements", 11, 2, 2, BuildGatherElements},
    {"", "GatherND", 11, 2, 2, BuildGatherNd},
    {"", "GatherND", 12, 2, 2, BuildGatherNd},
    {"", "Range", 11, 3, 3, BuildRange},
};

}  // namespace

std::span<const OnnxOp> GatherOps() { return kGatherOps; }

}  // namespace forge::formats
