// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/builders/steps.h"

#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"

namespace forge::formats {

bool HasRank(OnnxNode& n, size_t i, int64_t least, int64_t most) {
  const ir::Type& t = n.type(i);
  if (!t.is_tensor() || t.rank() < least || t.rank() > most)
    n.Fail("input {} is {}, which has not {} to {} axes", i, t.ToText(), least, most);
  return n.status().ok();
}

bool IsOfRank(OnnxNode& n, ir::Value x, int64_t rank) {
  if (!n.status().ok() || !n.fn().status().ok()) return false;
  if (!x.type().is_tensor() || x.type().rank() != rank)
    n.Fail("{} where a tensor of {} axes is needed", x.type().ToText(), rank);
  return n.status().ok();
}

ir::Value ReshapedTo(OnnxNode& n, ir::Value x, ir::Dims shape) {
  return n.fn()(ir::Reshape{std::move(shape)}, {x});
}

ir::Value Permuted(OnnxNode& n, ir::Value x, std::vector<int64_t> permutation) {
  return n.fn()(ir::Transpose{std::move(permutation)}, {x});
}

ir::Value Part(OnnxNode& n, ir::Value x, int64_t axis, const ir::Dim& begin, const ir::Dim& end,
               int64_t step) {
  ir::Slice op{.begin = {begin}, .end = {end}, .axes = {axis}};
  if (step != 1) op.steps = {step};
  return n.fn()(op, {x});
}

ir::Value Joined(OnnxNode& n, const ir::Values& parts, int64_t axis) {
  return n.fn().Add(ir::Concat{axis}, parts)[0];
}

ir::Value Places(OnnxNode& n, const ir::Dim& count, int64_t axis, int64_t rank) {
  ir::Dims shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = count;
  return ReshapedTo(n, n.fn()(ir::Iota{.dtype = DType::kI32, .count = count}, {}), shape);
}

ir::Value Converted(OnnxNode& n, ir::Value x, DType to) {
  return x.type().dtype() == to ? x : n.fn()(ir::Cast{to}, {x});
}

ir::Value Zeros(OnnxNode& n, DType dtype, ir::Dims shape) {
  return n.fn()(ir::Fill{.dtype = dtype, .shape = std::move(shape)}, {});
}

ir::Value ProductOf(OnnxNode& n, ir::Value a, ir::Value b,
                    absl::FunctionRef<ir::Value(ir::Value, ir::Value)> make) {
  const auto is_vector = [](ir::Value v) { return v.type().is_tensor() && v.type().rank() == 1; };
  const bool row = is_vector(a), column = is_vector(b);
  if (row) a = ReshapedTo(n, a, {1, a.type().shape()[0]});
  if (column) b = ReshapedTo(n, b, {b.type().shape()[0], 1});
  const ir::Value y = make(a, b);
  if ((!row && !column) || !y.type().is_tensor()) return y;
  ir::Dims shape = y.type().shape();
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return ReshapedTo(n, y, std::move(shape));
}

DType TypeAttribute(OnnxNode& n, std::string_view name, DType fallback) {
  const int64_t code = n.Int(name, 0);
  if (code == 0) return fallback;
  const absl::StatusOr<DType> type =
      OnnxDType(code == static_cast<int32_t>(code) ? static_cast<int32_t>(code) : -1);
  if (!type.ok()) n.Fail("attribute '{}': {}", name, Message(type.status()));
  return type.value_or(fallback);
}

}  // namespace forge::formats
