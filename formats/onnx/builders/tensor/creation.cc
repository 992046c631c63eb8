// SPDX-License-Identifier: Apache-2.0
// Tensors made of shapes and indices.
#include "formats/onnx/builders/families.h"
#include "formats/onnx/tensor.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/creation/shape_of.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/one_hot.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::formats {
namespace {

ir::Values BuildConstantOfShape(OnnxNode& n) {
  ir::Fill op;
  if (const std::optional<ir::HostValue> value = n.Tensor("value")) {
    if (value->elements() != 1) n.Fail("its value has {} elements", value->elements());
    op.dtype = value->dtype();
    if (n.status().ok()) op.value = value->number(0);
  }
  if (const std::optional<ir::Dims> shape = n.Contents(0)) {
    op.shape = *shape;
    return n.fn().Add(op, {});
  }
  const ir::Function::RuntimeField runtime[] = {{"shape", n.in(0)}};
  return n.fn().AddRuntimeValued(op, {}, runtime);
}

ir::Values BuildEyeLike(OnnxNode& n) {
  const ir::Type x = n.type(0);
  DType t = x.dtype();
  if (const int64_t code = n.Int("dtype", 0); code != 0) {
    const absl::StatusOr<DType> given = OnnxDType(static_cast<int32_t>(code));
    if (!given.ok()) n.Fail("attribute 'dtype': {}", Message(given.status()));
    t = given.value_or(t);
  }
  const int64_t k = n.Int("k", 0);
  if (!x.is_tensor() || x.rank() != 2) n.Fail("{} is not a matrix", x.ToText());
  if (!n.status().ok()) return {};
  const ir::Value rows = n.fn()(ir::Iota{.begin = k, .count = x.shape()[0]}, {});
  const ir::Value column = n.fn()(ir::Reshape{{x.shape()[0], 1}}, {rows});
  const ir::Value columns = n.fn()(ir::Iota{.count = x.shape()[1]}, {});
  return {ir::convert(n.fn()(ir::Equal{}, {column, columns}), t)};
}

// Indices and the depth may be of any type of number.
ir::Values BuildOneHot(OnnxNode& n) {
  ir::OneHot op{.axis = n.Int("axis", -1)};
  ir::Value indices = n.in(0);
  const DType t = n.type(0).dtype();
  if (t != DType::kI32 && t != DType::kI64) indices = ir::convert(indices, DType::kI64);
  const std::optional<ir::Dims> depth = n.Contents(1);
  if (const std::optional<Number> number = n.ConstantNumber(1)) {
    op.depth = number->i64();
  } else if (depth && depth->size() == 1) {
    op.depth = depth->front();
  } else {
    const ir::Function::RuntimeField runtime[] = {{"depth", ir::convert(n.in(1), DType::kI64)}};
    return n.fn().AddRuntimeValued(op, std::array{indices, n.in(2)}, runtime);
  }
  return {n.fn()(op, {indices, n.in(2)})};
}

ir::Values BuildSize(OnnxNode& n) {
  const ir::Reduce product{.kind = ir::ReduceKind::kProd, .axes = {}, .keep_dims = false};
  return {n.fn()(product, {n.fn()(ir::ShapeOf{}, {n.in(0)})})};
}

constexpr OnnxOp kCreationOps[] = {
    {"", "ConstantOfShape", 9, 1, 1, BuildConstantOfShape},
    {"", "EyeLike", 9, 1, 1, BuildEyeLike},
    {"", "OneHot", 9, 3, 3, BuildOneHot},
    {"", "OneHot", 11, 3, 3, BuildOneHot},
    {"", "Size", 1, 1, 1, BuildSize},
};

}  // namespace

std::span<const OnnxOp> CreationOps() { return kCreationOps; }

}  // namespace forge::formats
