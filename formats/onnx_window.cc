// SPDX-License-Identifier: Apache-2.0
// Convolution and pooling. The ops work on images: signals of one axis get a second one of
// extent 1.
#include <algorithm>
#include <limits>

#include "formats/onnx_builders.h"
#include "ir/ops/conv2d.h"
#include "ir/ops/conv_transpose2d.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/fill.h"
#include "ir/ops/pad.h"
#include "ir/ops/pool2d.h"
#include "ir/ops/reshape.h"

namespace forge::formats {
namespace {

// The attributes that place a window, for rows and columns.
struct WindowAttributes {
  size_t axes = 0;  // of the file's operand: 1 or 2
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads;           // top, left, bottom, right
  std::vector<ir::Dim> before, after;  // in place of `pads` where they depend on a symbol
};

enum class AutoPad : uint8_t { kNone, kUpper, kLower, kValid };

AutoPad AutoPadOf(OnnxNode& n) {
  const std::string word = n.String("auto_pad", "NOTSET");
  if (word == "SAME_UPPER") return AutoPad::kUpper;
  if (word == "SAME_LOWER") return AutoPad::kLower;
  if (word == "VALID") return AutoPad::kValid;
  if (word != "NOTSET") n.Fail("attribute 'auto_pad' is '{}'", word);
  return AutoPad::kNone;
}

// The numbers of `name`, one for each axis of the window (pads: two); 1-D ones become those of a
// column of rows.
std::vector<int64_t> ListOf(OnnxNode& n, std::string_view name, size_t axes, int64_t fallback) {
  const bool pads = name == "pads";
  const size_t want = pads ? 2 * axes : axes;
  std::vector<int64_t> list = n.Ints(name);
  if (list.empty()) list.assign(want, fallback);
  constexpr int64_t kMost = int64_t{1} << 31;
  const bool bad =
      std::ranges::any_of(list, [&](int64_t v) { return v < (pads ? 0 : 1) || v > kMost; });
  if (list.size() != want || bad) {
    n.Fail("attribute '{}' is [{}]", name, fmt::join(list, ", "));
    list.assign(want, fallback);
  }
  if (axes == 2) return list;
  if (!pads) return {list[0], 1};
  return {list[0], 0, list[1], 0};
}

// Pads so that as many windows fit as there are strides in the extent: evenly, the odd one behind
// (upper) or before (lower).
void PadSame(WindowAttributes& w, std::span<const ir::Dim> extents, bool lower) {
  for (size_t i = 0; i < 2; ++i) {
    const ir::Dim& extent = extents[i];
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const ir::Dim windows = CeilDiv(extent, w.strides[i]);
    const ir::Dim total = Max((windows - 1) * w.strides[i] + reach - extent, 0);
    const ir::Dim half = FloorDiv(total, 2);
    w.before.push_back(lower ? total - half : half);
    w.after.push_back(total - w.before.back());
  }
  if (!ir::AllConstant(w.before) || !ir::AllConstant(w.after)) return;
  w.pads = {w.before[0].constant(), w.before[1].constant(), w.after[0].constant(),
            w.after[1].constant()};
  w.before.clear();
  w.after.clear();
}

// The operand as an image, [n, c, h, w]; absent after a failure.
ir::Value ImageOf(OnnxNode& n, size_t operand) {
  const ir::Value x = n.in(operand);
  if (!x.type().is_tensor() || x.type().rank() < 3 || x.type().rank() > 4) {
    n.Fail("{} has {} spatial axes; 1 and 2 are supported", x.type().ToText(),
           x.type().is_tensor() ? std::to_string(x.type().rank() - 2) : "an unknown number of");
    return {};
  }
  if (x.type().rank() == 4) return x;
  ir::Dims shape = x.type().shape();
  shape.emplace_back(1);
  return n.fn()(ir::Reshape{std::move(shape)}, {x});
}

// Undoes ImageOf for a result.
ir::Value Restored(OnnxNode& n, ir::Value y) {
  if (n.type(0).rank() == 4 || !y.type().is_tensor()) return y;
  ir::Dims shape = y.type().shape();
  shape.pop_back();
  return n.fn()(ir::Reshape{std::move(shape)}, {y});
}

// kernel: of rows and columns
WindowAttributes ReadWindow(OnnxNode& n, const ir::Type& image, std::vector<int64_t> kernel) {
  WindowAttributes w;
  w.axes = static_cast<size_t>(n.type(0).rank() - 2);
  w.kernel = std::move(kernel);
  w.strides = ListOf(n, "strides", w.axes, 1);
  w.dilations = ListOf(n, "dilations", w.axes, 1);
  w.pads = ListOf(n, "pads", w.axes, 0);
  const AutoPad automatic = AutoPadOf(n);
  if (automatic == AutoPad::kNone) return w;
  w.pads.assign(4, 0);
  if (automatic != AutoPad::kValid)
    PadSame(w, std::span(image.shape()).subspan(2), automatic == AutoPad::kLower);
  return w;
}

// Applies padding that no attribute can hold.
ir::Value Padded(OnnxNode& n, const WindowAttributes& w, ir::Value x, double value) {
  if (w.before.empty()) return x;
  return n.fn()(ir::Pad{.before = {0, 0, w.before[0], w.before[1]},
                        .after = {0, 0, w.after[0], w.after[1]},
                        .value = value},
                {x});
}

// Means over positions inside the image while its padding depends on a symbol: means over all
// positions, divided by the share of positions that lie inside.
ir::Value MeanInside(OnnxNode& n, const WindowAttributes& w, const ir::Pool2d& op, ir::Value x) {
  const ir::Dims& shape = x.type().shape();
  const ir::Fill ones{.value = 1, .dtype = x.type().dtype(), .shape = {1, 1, shape[2], shape[3]}};
  const ir::Value share = n.fn()(op, {Padded(n, w, n.fn()(ones, {}), 0)});
  return n.fn()(ir::Div{}, {n.fn()(op, {Padded(n, w, x, 0)}), share});
}

ir::Values Pool(OnnxNode& n, ir::PoolKind kind) {
  n.Ignore("storage_order");  // of the indices, which nobody may read
  const bool average = kind == ir::PoolKind::kAverage;
  const bool inside_only = average && !n.Flag("count_include_pad");
  if (!n.Has("kernel_shape")) n.Fail("attribute 'kernel_shape' is missing");
  const ir::Value x = ImageOf(n, 0);
  if (!x) return {};
  const auto axes = static_cast<size_t>(n.type(0).rank() - 2);
  const WindowAttributes w = ReadWindow(n, x.type(), ListOf(n, "kernel_shape", axes, 1));
  const ir::Pool2d op{.kind = kind,
                      .kernel = w.kernel,
                      .strides = w.strides,
                      .dilations = w.dilations,
                      .padding = w.pads,
                      .ceil_mode = n.Flag("ceil_mode"),
                      .count_include_pad = average && !inside_only};
  if (!n.status().ok()) return {};
  if (inside_only && !w.before.empty()) return {Restored(n, MeanInside(n, w, op, x))};
  const double around = average ? 0 : -std::numeric_limits<double>::infinity();
  return {Restored(n, n.fn()(op, {Padded(n, w, x, around)}))};
}

// What ConvTranspose's auto_pad and output_shape come to: padding for a result of `want`.
void PadTo(ir::ConvTranspose2d& op, std::span<const int64_t> want, const ir::Type& image,
           std::span<const int64_t> kernel, bool lower, OnnxNode& n) {
  for (size_t a = 0; a < 2; ++a) {
    const ir::Dim& extent = image.shape()[2 + a];
    if (!want.empty() && !extent.is_constant())
      return n.Fail("output_shape for a dimension that is not known before the model runs");
    const int64_t reach = (kernel[a] - 1) * op.dilations[a] + 1 + op.output_padding[a];
    // Without output_shape, the result is extent * stride.
    const int64_t total = want.empty() ? reach - op.strides[a]
                                       : (extent.constant() - 1) * op.strides[a] + reach - want[a];
    const int64_t all = std::max<int64_t>(total, 0), half = all / 2;
    if (total < 0) op.output_padding[a] -= total;
    op.padding[a] = lower ? all - half : half;
    op.padding[2 + a] = all - op.padding[a];
  }
}

// output_padding or output_shape: rows and columns, or nothing.
std::vector<int64_t> PairOf(OnnxNode& n, std::string_view name, size_t axes, int64_t second) {
  std::vector<int64_t> list = n.Ints(name);
  if (list.empty()) return list;
  constexpr int64_t kMost = int64_t{1} << 31;
  if (name == "output_shape" && list.size() == axes + 2) list.erase(list.begin(), list.begin() + 2);
  if (list.size() != axes ||
      std::ranges::any_of(list, [](int64_t v) { return v < 0 || v > kMost; })) {
    n.Fail("attribute '{}' is [{}]", name, fmt::join(list, ", "));
    return {};
  }
  if (axes == 1) list.push_back(second);
  return list;
}

// The kernel of a convolution's weights; fails where the attribute differs or it is not known.
std::vector<int64_t> KernelOf(OnnxNode& n, ir::Value weight) {
  const ir::Dims& shape = weight.type().shape();
  if (n.type(0).rank() != n.type(1).rank() || !shape[2].is_constant() || !shape[3].is_constant()) {
    n.Fail("weights {} for {}", n.type(1).ToText(), n.type(0).ToText());
    return {1, 1};
  }
  std::vector<int64_t> kernel = {shape[2].constant(), shape[3].constant()};
  const auto axes = static_cast<size_t>(n.type(0).rank() - 2);
  if (n.Has("kernel_shape") && ListOf(n, "kernel_shape", axes, 1) != kernel)
    n.Fail("attribute 'kernel_shape' does not match weights {}", n.type(1).ToText());
  return kernel;
}

}  // namespace

ir::Values BuildAveragePool(OnnxNode& n) { return Pool(n, ir::PoolKind::kAverage); }
ir::Values BuildMaxPool(OnnxNode& n) { return Pool(n, ir::PoolKind::kMax); }

ir::Values BuildConv(OnnxNode& n) {
  ir::Conv2d op{.groups = n.Int("group", 1)};
  ir::Value x = ImageOf(n, 0);
  const ir::Value weight = ImageOf(n, 1);
  if (!x || !weight) return {};
  std::vector<int64_t> kernel = KernelOf(n, weight);
  if (!n.status().ok()) return {};
  const WindowAttributes w = ReadWindow(n, x.type(), std::move(kernel));
  if (!n.status().ok()) return {};
  x = Padded(n, w, x, 0);
  op.strides = w.strides;
  op.dilations = w.dilations;
  op.padding = w.pads;
  return {Restored(n, n.fn().Add(op, std::array{x, weight, n.in(2)})[0])};
}

ir::Values BuildConvTranspose(OnnxNode& n) {
  ir::ConvTranspose2d op{.groups = n.Int("group", 1)};
  const ir::Value x = ImageOf(n, 0);
  const ir::Value weight = ImageOf(n, 1);
  if (!x || !weight) return {};
  const std::vector<int64_t> kernel = KernelOf(n, weight);
  const auto axes = static_cast<size_t>(n.type(0).rank() - 2);
  op.strides = ListOf(n, "strides", axes, 1);
  op.dilations = ListOf(n, "dilations", axes, 1);
  op.padding = ListOf(n, "pads", axes, 0);
  if (const auto more = PairOf(n, "output_padding", axes, 0); !more.empty())
    op.output_padding = more;
  const std::vector<int64_t> want = PairOf(n, "output_shape", axes, 1);
  const AutoPad automatic = AutoPadOf(n);
  if (!n.status().ok()) return {};
  const bool same = automatic == AutoPad::kUpper || automatic == AutoPad::kLower;
  // An even total of padding is split evenly; SAME_UPPER puts the odd one at the end.
  if (same || !want.empty()) PadTo(op, want, x.type(), kernel, automatic != AutoPad::kUpper, n);
  if (!n.status().ok()) return {};
  return {Restored(n, n.fn().Add(op, std::array{x, weight, n.in(2)})[0])};
}

}  // namespace forge::formats
