// SPDX-License-Identifier: Apache-2.0
// A convolution whose taps lie at computed places.
#include <array>
#include <bit>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/nn/window.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/sampling/grid_sample.h"

namespace forge::formats {
namespace {

struct Deformed {
  ir::Conv op;
  int64_t groups = 1;  // of offsets
  std::array<int64_t, 2> kernel{};
  ir::Dim batch, channels, rows, columns;  // of the result: rows, columns
  int64_t taps() const { return kernel[0] * kernel[1]; }
};

// The attribute for an axis; pads come before each axis.
int64_t OfAxis(const std::vector<int64_t>& list, size_t axis, int64_t fallback) {
  return list.empty() ? fallback : list[axis];
}

// The image is made as large as a power of two, with zeros, which lie around it anyway: then the
// fractions of whole places are exact, and so is what lies there.
ir::Dim RoomFor(const ir::Dim& extent) {
  if (!extent.is_constant()) return extent;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent.constant())));
}

// Where the taps lie without offsets along an axis, as a fraction of the image from -1 to 1; with
// the offsets [n * groups, taps, rows, columns].
ir::Value PlacesAlong(OnnxNode& n, const Deformed& d, size_t axis, ir::Value offset) {
  const DType t = offset.type().dtype();
  const ir::Dim extent = n.type(0).shape()[2 + axis];
  const ir::Dim count = axis == 0 ? d.rows : d.columns;
  const ir::Value tap =
      ReshapedTo(n, n.fn()(ir::Iota{.dtype = t, .count = d.taps()}, {}), {d.taps(), 1, 1});
  const auto width = static_cast<double>(d.kernel[1]);
  const ir::Value row = n.fn()(ir::Floor{}, {tap / width});
  const ir::Value of_kernel = axis == 0 ? row : tap - row * width;
  const ir::Value step = Converted(n, Places(n, count, static_cast<int64_t>(axis) + 1, 3), t);
  const ir::Value place = of_kernel * static_cast<double>(OfAxis(d.op.dilations, axis, 1)) +
                          step * static_cast<double>(OfAxis(d.op.strides, axis, 1)) -
                          static_cast<double>(OfAxis(d.op.padding, axis, 0)) + offset;
  return (place * 2.0 + 1.0) / ir::ScalarOf(n.fn(), RoomFor(extent), t) - 1.0;
}

// The image at each tap, [n, channels * taps, rows * columns].
ir::Value Sampled(OnnxNode& n, const Deformed& d) {
  const ir::Dims x = n.type(0).shape();
  const ir::Dim parts = d.batch * d.groups, each = ir::FloorDiv(d.channels, d.groups);
  const ir::Value offsets =
      ReshapedTo(n, ir::Widened(n.in(2)), {parts, d.taps(), 2, d.rows, d.columns});
  ir::Values ends;
  for (const size_t axis : {size_t{1}, size_t{0}}) {
    const auto at = static_cast<int64_t>(axis);
    const ir::Value own =
        ReshapedTo(n, Part(n, offsets, 2, at, at + 1), {parts, d.taps(), d.rows, d.columns});
    ends.push_back(
        ReshapedTo(n, PlacesAlong(n, d, axis, own), {parts, d.rows * d.taps(), d.columns, 1}));
  }
  const ir::Value image = ReshapedTo(n, ir::Widened(n.in(0)), {parts, each, x[2], x[3]});
  const ir::Dims none(4, 0), after = {0, 0, RoomFor(x[2]) - x[2], RoomFor(x[3]) - x[3]};
  const ir::Value room = n.fn()(ir::Pad{.before = none, .after = after}, {image});
  ir::Value y = n.fn()(ir::GridSample{}, {room, Joined(n, ends, 3)});
  if (n.HasInput(4)) {
    const ir::Dims apart = {parts, each, d.taps(), d.rows, d.columns};
    const ir::Value mask =
        ReshapedTo(n, ir::Widened(n.in(4)), {parts, 1, d.taps(), d.rows, d.columns});
    y = ReshapedTo(n, y, apart) * mask;
  }
  return ReshapedTo(n, y, {d.batch, d.channels * d.taps(), d.rows * d.columns});
}

std::optional<Deformed> ReadDeformed(OnnxNode& n) {
  Deformed d{.groups = n.Int("offset_group", 1)};
  const std::optional<PlacedConv> conv = ReadConv(n, 1);
  if (!conv || !HasRank(n, 0, 4, 4) || !HasRank(n, 2, 4, 4)) return std::nullopt;
  d.op = conv->op;
  const ir::Dims& x = n.type(0).shape();
  const ir::Dims& w = n.type(1).shape();
  const ir::Dims& offset = n.type(2).shape();
  d.kernel = {w[2].constant(), w[3].constant()};
  d.batch = x[0], d.channels = x[1];
  d.rows = offset[2], d.columns = offset[3];
  if (d.groups < 1 || d.op.groups < 1 || !(offset[1] == ir::Dim(2 * d.groups * d.taps())) ||
      !(w[1] * d.op.groups == d.channels) || !w[0].is_constant() ||
      w[0].constant() % d.op.groups != 0)
    n.Fail("offsets {} and weights {} do not match {} in {} and {} groups", n.type(2).ToText(),
           n.type(1).ToText(), n.type(0).ToText(), d.groups, d.op.groups);
  return n.status().ok() ? std::optional(d) : std::nullopt;
}

ir::Values BuildDeformConv(OnnxNode& n) {
  const std::optional<Deformed> read = ReadDeformed(n);
  if (!read) return {};
  const Deformed& d = *read;
  const ir::Value taps = Sampled(n, d);
  if (!n.fn().status().ok()) return {};
  const ir::Dims w = n.type(1).shape();
  const int64_t groups = d.op.groups;
  const ir::Dim terms = w[1] * d.taps(), pixels = d.rows * d.columns;
  const ir::Value weights =
      ReshapedTo(n, ir::Widened(n.in(1)), {1, groups, ir::FloorDiv(w[0], groups), terms});
  ir::Value y =
      n.fn()(ir::MatMul{}, {weights, ReshapedTo(n, taps, {d.batch, groups, terms, pixels})});
  y = ReshapedTo(n, y, {d.batch, w[0], d.rows, d.columns});
  if (n.HasInput(3)) y = y + ReshapedTo(n, ir::Widened(n.in(3)), {w[0], 1, 1});
  return {ir::Narrowed(y, n.type(0).dtype())};
}

constexpr OnnxOp kDeformConvOps[] = {{"", "DeformConv", 19, 3, 5, BuildDeformConv}};

}  // namespace

std::span<const OnnxOp> DeformConvOps() { return kDeformConvOps; }

}  // namespace forge::formats
