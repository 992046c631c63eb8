// SPDX-License-Identifier: Apache-2.0
// Sampling at computed places, and images of columns.
#include <algorithm>
#include <bit>
#include <limits>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/sampling/affine_grid.h"
#include "ir/ops/sampling/grid_sample.h"
#include "ir/ops/sampling/roi_align.h"
#include "ir/ops/spatial/conv_transpose.h"
#include "ir/ops/spatial/fold.h"

namespace forge::formats {
namespace {

// Until version 19 the words end in -linear and -cubic.
ir::SampleKind SampleKindOf(OnnxNode& n) {
  const bool old = n.since() < 20;
  const std::string word = n.String("mode", old ? "bilinear" : "linear");
  if (word == "nearest") return ir::SampleKind::kNearest;
  if (word == (old ? "bilinear" : "linear")) return ir::SampleKind::kLinear;
  if (word == (old ? "bicubic" : "cubic")) return ir::SampleKind::kCubic;
  n.Fail("attribute 'mode' is '{}'", word);
  return ir::SampleKind::kLinear;
}

ir::SamplePadding SamplePaddingOf(OnnxNode& n) {
  const std::string word = n.String("padding_mode", "zeros");
  if (word == "zeros") return ir::SamplePadding::kZeros;
  if (word == "border") return ir::SamplePadding::kBorder;
  if (word == "reflection") return ir::SamplePadding::kReflection;
  n.Fail("attribute 'padding_mode' is '{}'", word);
  return ir::SamplePadding::kZeros;
}

// A list of numbers that an operand states.
std::optional<std::vector<int64_t>> StatedInts(OnnxNode& n, size_t i, std::string_view name) {
  std::optional<std::vector<int64_t>> list = n.ConstantInts(i);
  if (!list) n.Fail("its {} is not known before the model runs", name);
  return list;
}

ir::Values BuildGridSample(OnnxNode& n) {
  const ir::GridSample op{SampleKindOf(n), SamplePaddingOf(n), n.Flag("align_corners")};
  return n.fn().Add(op, std::array{n.in(0), n.in(1)});
}

ir::Values BuildAffineGrid(OnnxNode& n) {
  ir::AffineGrid op{.align_corners = n.Flag("align_corners")};
  const std::optional<ir::Dims> size = n.Contents(1);
  if (!size || size->size() < 4) n.Fail("its size is not known before the model runs, or short");
  if (!n.status().ok()) return {};
  op.sizes.assign(size->begin() + 2, size->end());
  return n.fn().Add(op, std::array{n.in(0)});
}

// How many points along an axis the bins of the largest box have, one in each element; a power of
// two, so that runs with other boxes share what is prepared.
int64_t MostPoints(OnnxNode& n, const ir::RoiAlign& op) {
  const std::optional<ir::HostValue> boxes = n.Constant(1);
  if (!boxes) n.Fail("its boxes are not known before the model runs");
  if (!boxes || !HasRank(n, 1, 2, 2)) return 1;
  double most = 1;
  for (int64_t i = 0; i + 3 < boxes->elements(); i += 4)
    for (const int64_t axis : {0, 1}) {
      const double length = (boxes->f64(i + 2 + axis) - boxes->f64(i + axis)) * op.scale;
      most = std::max(most, std::ceil(length / static_cast<double>(op.sizes[1 - axis])));
    }
  constexpr double kLimit = 1 << 15;
  if (!(most <= kLimit)) n.Fail("a box with bins of {} elements", most);
  return n.status().ok() ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most))) : 1;
}

// Until version 15 boxes are not moved by half an element.
ir::Values BuildRoiAlign(OnnxNode& n) {
  const std::string mode = n.String("mode", "avg");
  if (mode != "avg" && mode != "max") n.Fail("attribute 'mode' is '{}'", mode);
  ir::RoiAlign op{.sizes = {n.Int("output_height", 1), n.Int("output_width", 1)},
                  .samples = n.Int("sampling_ratio", 0),
                  .scale = n.Float("spatial_scale", 1),
                  .half_pixel = false,
                  .largest = mode == "max"};
  if (n.since() >= 16) {
    const std::string word = n.String("coordinate_transformation_mode", "half_pixel");
    op.half_pixel = word == "half_pixel";
    if (!op.half_pixel && word != "output_half_pixel")
      n.Fail("attribute 'coordinate_transformation_mode' is '{}'", word);
  }
  op.adaptive = op.samples == 0;
  if (op.adaptive) op.samples = MostPoints(n, op);
  if (!n.status().ok()) return {};
  return n.fn().Add(op, std::array{n.in(0), n.in(1), n.in(2)});
}

// Which elements of an axis belong to each part of each box.
struct BoxParts {
  ir::Value holds;  // [boxes, parts, extent]
  ir::Value any;    // [boxes, parts]: is there one?
};

// The parts from column `from` of `boxes` [boxes, 5] to column `from` + 2, ends included.
BoxParts PartsOfBoxes(OnnxNode& n, ir::Value boxes, int64_t from, int64_t parts,
                      const ir::Dim& extent) {
  const auto place = [&](int64_t column) {  // rounded, halves away from 0
    const ir::Value v = Part(n, boxes, 1, column, column + 1);
    return ir::select(v < 0.0, n.fn()(ir::Ceil{}, {v - 0.5}), n.fn()(ir::Floor{}, {v + 0.5}));
  };
  const auto numbers = [&](const ir::Dim& count, int64_t axis, int64_t rank) {
    return Converted(n, Places(n, count, axis, rank), DType::kF32);
  };
  const ir::Value begin = place(from), part = numbers(parts, 1, 2);
  const ir::Value size = ir::max(place(from + 2) - begin + 1.0, 1.0) / static_cast<double>(parts);
  const ir::Value last = ir::ScalarOf(n.fn(), extent, DType::kF32);
  const auto within = [&](ir::Value v) { return ir::min(ir::max(v + begin, 0.0), last); };
  const ir::Value low = within(n.fn()(ir::Floor{}, {part * size})),
                  high = within(n.fn()(ir::Ceil{}, {(part + 1.0) * size}));
  if (!IsOfRank(n, low, 2) || !IsOfRank(n, high, 2)) return {};
  const ir::Dims apart = {low.type().shape()[0], parts, 1};
  const ir::Value at = numbers(extent, 2, 3);
  return {n.fn()(ir::And{}, {~(at < ReshapedTo(n, low, apart)), at < ReshapedTo(n, high, apart)}),
          low < high};
}

// The greatest element of each part of a box; 0 where a part has none.
ir::Values BuildMaxRoiPool(OnnxNode& n) {
  constexpr int64_t kMostParts = 4096;
  const std::vector<int64_t> parts = n.Ints("pooled_shape");
  const double scale = n.Float("spatial_scale", 1);
  if (parts.size() != 2 ||
      std::ranges::any_of(parts, [](int64_t p) { return p < 1 || p > kMostParts; }))
    n.Fail("pooled_shape is [{}]", fmt::join(parts, ", "));
  if (!n.status().ok() || !HasRank(n, 0, 4, 4) || !HasRank(n, 1, 2, 2)) return {};
  const ir::Dims x = n.type(0).shape();
  const ir::Dim count = n.type(1).shape()[0];
  const ir::Value boxes = Converted(n, n.in(1), DType::kF32) * scale;
  const ir::Value image = ReshapedTo(n, Part(n, n.in(1), 1, 0, 1), {count});
  const ir::Value images =
      n.fn()(ir::Gather{.axis = 0}, {n.in(0), Converted(n, image, DType::kI64)});
  const BoxParts rows = PartsOfBoxes(n, boxes, 2, parts[0], x[2]),
                 columns = PartsOfBoxes(n, boxes, 1, parts[1], x[3]);
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const auto greatest = [&](ir::Value holds, ir::Value v, int64_t axis) {
    const ir::Reduce op{.kind = ir::ReduceKind::kMax, .axes = {axis}, .keep_dims = false};
    return n.fn()(op, {ir::select(holds, v, kNone)});
  };
  ir::Value y = greatest(ReshapedTo(n, rows.holds, {count, 1, parts[0], x[2], 1}),
                         ReshapedTo(n, images, {count, x[1], 1, x[2], x[3]}), 3);
  y = greatest(ReshapedTo(n, columns.holds, {count, 1, 1, parts[1], x[3]}),
               ReshapedTo(n, y, {count, x[1], parts[0], 1, x[3]}), 4);
  const ir::Value any = n.fn()(ir::And{}, {ReshapedTo(n, rows.any, {count, 1, parts[0], 1}),
                                           ReshapedTo(n, columns.any, {count, 1, 1, parts[1]})});
  return {ir::select(any, y, 0.0)};
}

// The numbers of an attribute, one for each axis.
std::vector<int64_t> OfAxes(std::vector<int64_t> list, size_t count, int64_t fallback) {
  if (list.empty()) list.assign(count, fallback);
  return list;
}

// What `fold` does on two axes, on one or three: a transposed convolution in which each row of the
// blocks is a channel with a single tap.
ir::Value FoldedByTaps(OnnxNode& n, const ir::Fold& op) {
  const size_t axes = op.kernel.size();
  const ir::Type& x = n.type(0);
  int64_t taps = 1;
  constexpr int64_t kMostTaps = 1 << 16;
  for (int64_t k : op.kernel) taps = k < 1 || k > kMostTaps ? 0 : std::min(taps * k, kMostTaps);
  const bool fits = (axes == 1 || axes == 3) && op.sizes.size() == axes && taps > 0 &&
                    x.is_tensor() && x.rank() == 3 && x.shape()[1].is_constant() &&
                    x.shape()[1].constant() % taps == 0 && ir::AllConstant(op.sizes);
  if (!fits) {
    n.Fail("blocks [{}] of {} give no image [{}]", fmt::join(op.kernel, ", "), x.ToText(),
           ir::ToText(op.sizes));
    return n.in(0);
  }
  const std::vector<int64_t> strides = OfAxes(op.strides, axes, 1);
  const std::vector<int64_t> dilations = OfAxes(op.dilations, axes, 1);
  const std::vector<int64_t> pads = OfAxes(op.padding, 2 * axes, 0);
  if (strides.size() != axes || dilations.size() != axes || pads.size() != 2 * axes)
    n.Fail("its attributes have not one number for each axis");
  ir::ConvTranspose product{.strides = strides, .dilations = dilations, .padding = pads};
  ir::Dims grid = {x.shape()[0], x.shape()[1]}, weight = {x.shape()[1], 1};
  for (size_t a = 0; a < axes && n.status().ok(); ++a) {
    const int64_t reach = dilations[a] * (op.kernel[a] - 1) + 1;
    const int64_t room = op.sizes[a].constant() + pads[a] + pads[axes + a] - reach;
    if (room < 0 || strides[a] < 1) n.Fail("the image is smaller than a block");
    if (!n.status().ok()) break;
    grid.emplace_back(room / strides[a] + 1);
    product.output_padding.push_back(room % strides[a]);
    weight.emplace_back(op.kernel[a]);
  }
  if (!n.status().ok()) return n.in(0);
  product.groups = x.shape()[1].constant() / taps;
  const ir::Value row = n.fn()(
      ir::Remainder{}, {Places(n, x.shape()[1], 0, 2), ir::ScalarOf(n.fn(), taps, DType::kI32)});
  const ir::Value is_tap = n.fn()(ir::Equal{}, {row, Places(n, taps, 1, 2)});
  const ir::Value ones = ReshapedTo(n, Converted(n, is_tap, x.dtype()), weight);
  return n.fn().Add(product, std::array{ReshapedTo(n, n.in(0), grid), ones, ir::Value()})[0];
}

ir::Values BuildCol2Im(OnnxNode& n) {
  const std::optional<ir::Dims> image = n.Contents(1);
  if (!image) n.Fail("its image_shape is not known before the model runs");
  const auto block = StatedInts(n, 2, "block_shape");
  ir::Fold op{
      .strides = n.Ints("strides"), .dilations = n.Ints("dilations"), .padding = n.Ints("pads")};
  if (!n.status().ok()) return {};
  op.sizes = *image;
  op.kernel = *block;
  if (block->size() != 2) return {FoldedByTaps(n, op)};
  return n.fn().Add(op, std::array{n.in(0)});
}

constexpr OnnxOp kSampleOps[] = {
    {"", "AffineGrid", 20, 2, 2, BuildAffineGrid}, {"", "Col2Im", 18, 3, 3, BuildCol2Im},
    {"", "GridSample", 16, 2, 2, BuildGridSample}, {"", "GridSample", 20, 2, 2, BuildGridSample},
    {"", "MaxRoiPool", 1, 2, 2, BuildMaxRoiPool},  {"", "RoiAlign", 10, 3, 3, BuildRoiAlign},
    {"", "RoiAlign", 16, 3, 3, BuildRoiAlign},
};

}  // namespace

std::span<const OnnxOp> SampleOps() { return kSampleOps; }

}  // namespace forge::formats
