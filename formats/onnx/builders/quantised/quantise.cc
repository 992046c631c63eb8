// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/builders/quantised/quantise.h"

#include "base/narrow_float.h"
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/op/axes.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::formats {
namespace {

// Numbers that f32 holds, and those that ONNX rounds to it.
constexpr DTypes kQuantisedTypes =
    kStoredOnlyTypes | Bit(DType::kI8) | Bit(DType::kU8) | Bit(DType::kI16) | Bit(DType::kU16);

bool IsZero(const std::optional<ir::HostValue>& v) {
  if (!v) return false;
  for (int64_t i = 0; i < v->elements(); ++i)
    if (v->f64(i) != 0) return false;
  return true;
}

// Each element `block` times in a row along the axis, as many as x has there.
ir::Value InBlocks(OnnxNode& n, ir::Value v, const ir::Type& x, int64_t axis, int64_t block) {
  const auto at = static_cast<size_t>(axis);
  ir::Dims shape = v.type().shape();
  const ir::Dim blocks = shape[at];
  ir::Dims whole = x.shape();
  whole[at] = ir::CeilDiv(whole[at], block);
  if (!(shape == whole)) {
    n.Fail("{} scales or zero points for a block_size of {} along axis {} of {}", v.type().ToText(),
           block, axis, x.ToText());
    return v;
  }
  ir::Dims apart = shape;
  apart.insert(apart.begin() + axis + 1, 1);
  ir::Dims repeated = apart;
  repeated[at + 1] = block;
  shape[at] = blocks * block;
  const ir::Value all = n.fn()(ir::BroadcastTo{repeated}, {ReshapedTo(n, v, apart)});
  return Part(n, ReshapedTo(n, all, shape), axis, 0, x.shape()[at]);
}

}  // namespace

ir::Value AlongAxis(OnnxNode& n, ir::Value v, const ir::Type& x, int64_t axis, int64_t block) {
  if (!v.type().is_tensor() || block < 0) {
    n.Fail("{} are no scales or zero points", v.type().ToText());
    return v;
  }
  // Elements of less than a byte are only cast.
  if (Has(kStoredOnlyTypes, v.type().dtype())) v = Converted(n, v, DType::kF32);
  if (block > 0 && v.type().rank() != x.rank()) {
    n.Fail("{} scales or zero points with a block_size for {}", v.type().ToText(), x.ToText());
    return v;
  }
  if (v.type().elements() == ir::Dim(1)) return ReshapedTo(n, v, {});
  const absl::StatusOr<int64_t> at = ir::NormalAxis(axis, x.rank());
  if (at.ok() && block > 0) return InBlocks(n, v, x, *at, block);
  if (v.type().rank() != 1) {
    n.Fail(
        "scales and zero points must be scalars, or lists with one element for each slice of an "
        "axis");
    return v;
  }
  if (!at.ok() || !(v.type().shape()[0] == x.shape()[static_cast<size_t>(*at)])) {
    n.Fail("{} scales or zero points for axis {} of {}", v.type().ToText(), axis, x.ToText());
    return v;
  }
  ir::Dims shape(static_cast<size_t>(x.rank() - *at), 1);
  shape[0] = v.type().shape()[0];
  return ReshapedTo(n, v, std::move(shape));
}

ir::Value Quantised(OnnxNode& n, ir::Value v, ir::Value zero, DType to, bool saturate) {
  const bool is_float = Has(kAllFloatTypes, to);
  if (!is_float) v = n.fn()(ir::Round{}, {v});
  if (zero) v = v + Converted(n, zero, DType::kF32);
  return is_float ? CastTo(n, v, to, saturate) : n.fn()(ir::Cast{to}, {v});
}

ir::Value Dequantised(OnnxNode& n, ir::Value x, ir::Value scale, ir::Value zero) {
  ir::Value number = x;
  if (zero && x.type().dtype() == DType::kI32) number = x - zero;
  number = Converted(n, number, DType::kF32);
  if (zero && x.type().dtype() != DType::kI32) number = number - Converted(n, zero, DType::kF32);
  return number * Converted(n, scale, DType::kF32);
}

DynamicallyQuantised QuantisedOnItsRange(OnnxNode& n, ir::Value x) {
  const auto bound = [&](ir::ReduceKind kind) {
    return n.fn()(ir::Reduce{.kind = kind, .keep_dims = false}, {x});
  };
  const ir::Value low = ir::min(bound(ir::ReduceKind::kMin), 0.0);
  const ir::Value range = ir::max(bound(ir::ReduceKind::kMax), 0.0) - low;
  const ir::Value scale = ir::select(range > 0.0, range / 255.0, 1.0);
  const ir::Value zero = n.fn()(ir::Cast{DType::kU8}, {n.fn()(ir::Round{}, {0.0 - low / scale})});
  return {Quantised(n, x / scale, zero, DType::kU8), scale, zero};
}

namespace {

// (x - zero point) * scale, computed in f32.
ir::Values BuildDequantizeLinear(OnnxNode& n) {
  const int64_t axis = n.since() < 13 ? 0 : n.Int("axis", 1);
  const int64_t block = n.since() < 21 ? 0 : n.Int("block_size", 0);
  const ir::Value x = n.in(0), scale = n.in(1);
  const DType result = n.since() < 23 ? scale.type().dtype()
                                      : TypeAttribute(n, "output_dtype", scale.type().dtype());
  if (!x.type().is_tensor() || !Has(kQuantisedTypes | Bit(DType::kI32), x.type().dtype()))
    n.Fail("x is {}, which cannot be dequantised", x.type().ToText());
  if (n.HasInput(2) && n.type(2).is_tensor() && n.type(2).dtype() != x.type().dtype())
    n.Fail("the zero point is {}, x is {}", n.type(2).ToText(), x.type().ToText());
  if (!n.status().ok()) return {};
  ir::Value zero;
  if (n.HasInput(2) && !IsZero(n.Constant(2))) zero = AlongAxis(n, n.in(2), x.type(), axis, block);
  const ir::Value y = Dequantised(n, x, AlongAxis(n, scale, x.type(), axis, block), zero);
  return {Converted(n, y, result)};
}

ir::Values BuildQuantizeLinear(OnnxNode& n) {
  const int64_t axis = n.since() < 13 ? 0 : n.Int("axis", 1);
  const int64_t block = n.since() < 21 ? 0 : n.Int("block_size", 0);
  const bool saturate = n.since() < 19 || n.Int("saturate", 1) != 0;
  DType to = n.HasInput(2) ? n.type(2).dtype() : DType::kU8;
  if (n.since() >= 21) to = TypeAttribute(n, "output_dtype", to);
  n.Ignore("precision");  // f32 is at least as good
  const ir::Value x = n.in(0);
  if (!x.type().is_tensor() || !Has(kQuantisedTypes, to))
    n.Fail("{} cannot be quantised as {}", x.type().ToText(), Name(to));
  if (n.HasInput(2) && n.type(2).dtype() != to)
    n.Fail("the zero point is {}, the result {}", n.type(2).ToText(), Name(to));
  if (!n.status().ok()) return {};
  const ir::Value scale = AlongAxis(n, n.in(1), x.type(), axis, block);
  ir::Value zero;
  if (n.HasInput(2) && !IsZero(n.Constant(2))) zero = AlongAxis(n, n.in(2), x.type(), axis, block);
  if (!n.status().ok()) return {};
  const ir::Value v = Converted(n, x, DType::kF32) / Converted(n, scale, DType::kF32);
  return {Quantised(n, v, zero, to, saturate)};
}

ir::Values BuildDynamicQuantizeLinear(OnnxNode& n) {
  const DynamicallyQuantised y = QuantisedOnItsRange(n, n.in(0));
  return {y.value, y.scale, y.zero};
}

constexpr OnnxOp kQuantiseOps[] = {
    {"", "DequantizeLinear", 10, 2, 3, BuildDequantizeLinear},
    {"", "DequantizeLinear", 13, 2, 3, BuildDequantizeLinear},
    {"", "DequantizeLinear", 21, 2, 3, BuildDequantizeLinear},
    {"", "DequantizeLinear", 23, 2, 3, BuildDequantizeLinear},
    {"", "DynamicQuantizeLinear", 11, 1, 1, BuildDynamicQuantizeLinear},
    {"", "QuantizeLinear", 10, 2, 3, BuildQuantizeLinear},
    {"", "QuantizeLinear", 13, 2, 3, BuildQuantizeLinear},
    {"", "QuantizeLinear", 19, 2, 3, BuildQuantizeLinear},
    {"", "QuantizeLinear", 21, 2, 3, BuildQuantizeLinear},
};

}  // namespace

std::span<const OnnxOp> QuantiseOps() { return kQuantiseOps; }

}  // namespace forge::formats
