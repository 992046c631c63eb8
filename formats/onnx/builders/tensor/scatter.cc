// SPDX-License-Identifier: Apache-2.0
// Operators that write where indices say.
#include "ir/ops/indexing/scatter.h"

#include "formats/onnx/builders/families.h"
#include "ir/op/axes.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/indexing/scatter_nd.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/reshape.h"

namespace forge::formats {
namespace {

// From version 16 on; min and max from 18 on.
ir::ScatterMode ModeOf(OnnxNode& n) {
  const std::string word = n.since() >= 16 ? n.String("reduction", "none") : "none";
  if (word == "none") return ir::ScatterMode::kSet;
  if (word == "add") return ir::ScatterMode::kAdd;
  if (word == "mul") return ir::ScatterMode::kMul;
  if (word == "min" && n.since() >= 18) return ir::ScatterMode::kMin;
  if (word == "max" && n.since() >= 18) return ir::ScatterMode::kMax;
  n.Fail("attribute 'reduction' is '{}'", word);
  return ir::ScatterMode::kSet;
}

// The shape that MaxUnpool has without its third operand.
std::optional<ir::Dims> UnpooledShape(OnnxNode& n) {
  const ir::Type& x = n.type(0);
  const std::vector<int64_t> kernel = n.Ints("kernel_shape");
  const size_t axes = kernel.size();
  if (!x.is_tensor() || axes == 0 || x.shape().size() != axes + 2) {
    n.Fail("{} for a kernel of {} axes", x.ToText(), axes);
    return std::nullopt;
  }
  const std::vector<int64_t> strides = n.Ints("strides", std::vector<int64_t>(axes, 1));
  const std::vector<int64_t> pads = n.Ints("pads", std::vector<int64_t>(2 * axes, 0));
  if (strides.size() != axes || pads.size() != 2 * axes) {
    n.Fail("{} strides and {} pads for {} axes", strides.size(), pads.size(), axes);
    return std::nullopt;
  }
  ir::Dims shape{x.shape()[0], x.shape()[1]};
  for (size_t a = 0; a < axes; ++a)
    shape.push_back((x.shape()[2 + a] - 1) * strides[a] + kernel[a] - pads[a] - pads[axes + a]);
  return shape;
}

ir::Values BuildScatterElements(OnnxNode& n) {
  const ir::Scatter op{n.Int("axis", 0), ModeOf(n)};
  CheckIndicesAlong(n, op.axis);
  return n.fn().Add(op, std::array{n.in(0), n.in(1), n.in(2)});
}

ir::Values BuildScatterNd(OnnxNode& n) {
  const ir::ScatterNd op{.mode = ModeOf(n)};
  return n.fn().Add(op, std::array{n.in(0), n.in(1), n.in(2)});
}

// Its indices count through all of the result.
ir::Values BuildMaxUnpool(OnnxNode& n) {
  std::optional<ir::Dims> shape = UnpooledShape(n);
  if (!shape) return {};
  if (n.HasInput(2)) {
    shape = n.Contents(2);
    if (!shape) n.Fail("its output_shape is not known before the model runs");
    if (!n.status().ok()) return {};
  }
  ir::Function& f = n.fn();
  const auto flat = [&](ir::Value v) { return f(ir::Reshape{{v.type().elements()}}, {v}); };
  const ir::Value zeros = f(ir::Fill{0, n.type(0).dtype(), {Product(*shape)}}, {});
  const ir::Value y = f(ir::Scatter{}, {zeros, flat(n.in(1)), flat(n.in(0))});
  return {f(ir::Reshape{*std::move(shape)}, {y})};
}

constexpr OnnxOp kScatterOps[] = {
    {"", "MaxUnpool", 9, 2, 3, BuildMaxUnpool},
    {"", "Scatter", 9, 3, 3, BuildScatterElements},
    {"", "ScatterElements", 11, 3, 3, BuildScatterElements},
    {"", "ScatterElements", 16, 3, 3, BuildScatterElements},
    {"", "ScatterElements", 18, 3, 3, BuildScatterElements},
    {"", "ScatterND", 11, 3, 3, BuildScatterNd},
    {"", "ScatterND", 16, 3, 3, BuildScatterNd},
    {"", "ScatterND", 18, 3, 3, BuildScatterNd},
};

}  // namespace

std::span<const OnnxOp> ScatterOps() { return kScatterOps; }

}  // namespace forge::formats
