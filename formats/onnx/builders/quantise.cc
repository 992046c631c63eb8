// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "formats/onnx/builders/families.h"
#include "ir/op/axes.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"

namespace forge::formats {
namespace {

// Numbers of which f32 holds every difference, and those that ONNX rounds to it.
bool IsQuantised(DType t) {
  return t == DType::kI8 || t == DType::kU8 || t == DType::kI16 || t == DType::kU16 ||
         t == DType::kI32;
}

bool IsZero(const std::optional<ir::HostValue>& v) {
  if (!v) return false;
  for (int64_t i = 0; i < v->elements(); ++i)
    if (v->i64(i) != 0) return false;
  return true;
}

// A scale or zero point of the tensor stays as it is; one for each slice of `axis` lies along it.
ir::Value AlongAxis(OnnxNode& n, ir::Value v, const ir::Type& x, int64_t axis) {
  if (!v.type().is_tensor() || v.type().rank() > 1) {
    n.Fail(
        "scales and zero points must be scalars, or lists with one element for each slice of an "
        "axis");
    return v;
  }
  if (v.type().rank() == 0 || v.type().elements() == ir::Dim(1))
    return n.fn()(ir::Reshape{.shape = {}}, {v});
  const absl::StatusOr<int64_t> at = ir::NormalAxis(axis, x.rank());
  if (!at.ok() || !(v.type().shape()[0] == x.shape()[static_cast<size_t>(*at)])) {
    n.Fail("{} scales or zero points for axis {} of {}", v.type().ToText(), axis, x.ToText());
    return v;
  }
  ir::Dims shape(static_cast<size_t>(x.rank() - *at), 1);
  shape[0] = v.type().shape()[0];
  return n.fn()(ir::Reshape{.shape = std::move(shape)}, {v});
}

// (x - zero point) * scale, computed in f32.
ir::Values BuildDequantizeLinear(OnnxNode& n) {
  const int64_t axis = n.since() < 13 ? 0 : n.Int("axis", 1);
  if (n.since() >= 13 && n.Int("block_size", 0) != 0)
    n.Fail("block_size: block-wise scales are not supported");
  const ir::Value x = n.in(0), scale = n.in(1);
  if (!x.type().is_tensor() || !IsQuantised(x.type().dtype()))
    n.Fail("x is {}; tensors of i8, u8, i16, u16 and i32 can be dequantised", x.type().ToText());
  if (n.HasInput(2) && n.type(2).is_tensor() && n.type(2).dtype() != x.type().dtype())
    n.Fail("the zero point is {}, x is {}", n.type(2).ToText(), x.type().ToText());
  if (!n.status().ok()) return {};
  DType result = scale.type().dtype();
  if (const int64_t code = n.since() < 13 ? 0 : n.Int("output_dtype", 0); code != 0) {
    const absl::StatusOr<DType> to = OnnxDType(static_cast<int32_t>(code));
    if (!to.ok()) n.Fail("attribute 'output_dtype': {}", Message(to.status()));
    if (to.ok()) result = *to;
  }
  const auto wide = [&](ir::Value v) { return n.fn()(ir::Cast{DType::kF32}, {v}); };
  ir::Value number = x;
  if (n.HasInput(2) && !IsZero(n.Constant(2))) {
    const ir::Value zero = AlongAxis(n, n.in(2), x.type(), axis);
    number = x.type().dtype() == DType::kI32 ? x - zero : wide(x) - wide(zero);
  }
  if (number.type().dtype() != DType::kF32) number = wide(number);
  const ir::Value factor = AlongAxis(n, scale, x.type(), axis);
  const bool narrow = factor.type().dtype() != DType::kF32;
  const ir::Value y = number * (narrow ? wide(factor) : factor);
  return {result == DType::kF32 ? y : n.fn()(ir::Cast{result}, {y})};
}

constexpr OnnxOp kQuantiseOps[] = {
    {"", "DequantizeLinear", 10, 2, 3, BuildDequantizeLinear},
    {"", "DequantizeLinear", 13, 2, 3, BuildDequantizeLinear},
};

}  // namespace

std::span<const OnnxOp> QuantiseOps() { return kQuantiseOps; }

}  // namespace forge::formats
