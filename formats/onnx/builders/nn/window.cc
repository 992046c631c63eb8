// SPDX-License-Identifier: Apache-2.0
// Convolution and pooling over one to three spatial axes.
#include "formats/onnx/builders/nn/window.h"

#include <algorithm>
#include <limits>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/pooling/max_pool.h"
#include "ir/ops/pooling/sum_pool.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/conv_transpose.h"
#include "ir/ops/spatial/pool.h"

namespace forge::formats {
namespace {

// The attributes that place a window.
struct WindowAttributes {
  std::vector<int64_t> kernel, strides, dilations;  // a number for each axis
  std::vector<int64_t> pads;                        // before each axis, then behind each
  ir::Dims before, after;  // in place of `pads` where they depend on a symbol
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

// The numbers of `name`, one for each axis of the window (pads: two).
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
  return list;
}

// As an op's attribute: a list of what an empty one stands for is empty.
std::vector<int64_t> EmptyIfAll(std::vector<int64_t> list, int64_t fallback) {
  if (std::ranges::all_of(list, [&](int64_t v) { return v == fallback; })) list.clear();
  return list;
}

// Pads so that as many windows fit as there are strides in the extent: evenly, the odd one behind
// (upper) or before (lower).
void PadSame(WindowAttributes& w, std::span<const ir::Dim> extents, bool lower) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const ir::Dim& extent = extents[i];
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const ir::Dim windows = CeilDiv(extent, w.strides[i]);
    const ir::Dim total = Max((windows - 1) * w.strides[i] + reach - extent, 0);
    const ir::Dim half = FloorDiv(total, 2);
    w.before.push_back(lower ? total - half : half);
    w.after.push_back(total - w.before.back());
  }
  if (!ir::AllConstant(w.before) || !ir::AllConstant(w.after)) return;
  w.pads = ir::Constants(w.before);
  for (const ir::Dim& after : w.after) w.pads.push_back(after.constant());
  w.before.clear();
  w.after.clear();
}

// How many spatial axes the first operand has; fails where they are none or too many.
size_t SpatialAxesOf(OnnxNode& n) {
  const ir::Type& t = n.type(0);
  if (t.is_tensor() && t.rank() >= 3 && t.rank() <= 5) return t.shape().size() - 2;
  n.Fail("{} has {} spatial axes; 1 to 3 are supported", t.ToText(),
         t.is_tensor() ? std::to_string(t.rank() - 2) : "an unknown number of");
  return 1;
}

WindowAttributes ReadWindow(OnnxNode& n, std::vector<int64_t> kernel,
                            ChannelAxis channels = ChannelAxis::kFirst) {
  WindowAttributes w;
  const size_t axes = kernel.size();
  w.kernel = std::move(kernel);
  w.strides = ListOf(n, "strides", axes, 1);
  w.dilations = ListOf(n, "dilations", axes, 1);
  w.pads = ListOf(n, "pads", axes, 0);
  const AutoPad automatic = AutoPadOf(n);
  if (automatic == AutoPad::kNone || !n.status().ok()) return w;
  w.pads.assign(2 * axes, 0);
  const size_t first = channels == ChannelAxis::kFirst ? 2 : 1;
  if (automatic != AutoPad::kValid)
    PadSame(w, std::span(n.type(0).shape()).subspan(first, axes), automatic == AutoPad::kLower);
  return w;
}

// Applies padding that no attribute can hold.
ir::Value Padded(OnnxNode& n, const WindowAttributes& w, ir::Value x, double value) {
  if (w.before.empty()) return x;
  ir::Pad pad{.before = {0, 0}, .after = {0, 0}, .value = value};
  pad.before.insert(pad.before.end(), w.before.begin(), w.before.end());
  pad.after.insert(pad.after.end(), w.after.begin(), w.after.end());
  return n.fn()(pad, {x});
}

// Means over positions inside the image while its padding depends on a symbol: means over all
// positions, divided by the share of positions that lie inside.
ir::Value MeanInside(OnnxNode& n, const WindowAttributes& w, const ir::Pool& op, ir::Value x) {
  const ir::Dims& shape = x.type().shape();
  ir::Fill ones{.value = 1, .dtype = x.type().dtype(), .shape = shape};
  ones.shape[0] = ones.shape[1] = 1;
  const ir::Value share = n.fn()(op, {Padded(n, w, n.fn()(ones, {}), 0)});
  return n.fn()(ir::Div{}, {n.fn()(op, {Padded(n, w, x, 0)}), share});
}

// The place in each plane [n, c] of indices in row-major order, if its last axis came first and so
// on.
ir::Value ColumnMajor(ir::Value indices, const ir::Dims& x) {
  ir::Value rest = indices, out;
  ir::Dim stride = 1;
  for (size_t a = x.size(); a-- > 2;) stride = stride * x[a];
  for (size_t a = x.size(); a-- > 2;) {
    stride = FloorDiv(stride, x[a]);  // of this axis, where the first is next to itself
    const ir::Value extent = ir::DimValue(x[a], rest), quotient = div_floor(rest, extent);
    const ir::Value term = (rest - quotient * extent) * ir::DimValue(stride, rest);
    out = out ? out + term : term;
    rest = quotient;
  }
  return out;
}

// MaxPool's second result counts through all of x.
ir::Values PoolWithIndices(OnnxNode& n, const ir::Pool& op, ir::Value x, bool column_major) {
  const ir::MaxPool with{op.kernel, op.strides, op.dilations, op.padding, op.ceil_mode};
  ir::Values y = n.fn().Add(with, std::array{x});
  if (!n.fn().status().ok()) return y;
  const ir::Dims shape = x.type().shape();
  ir::Value& indices = y[1];
  if (column_major) indices = ColumnMajor(indices, shape);
  const ir::Dim plane = Product(ir::Dims(shape.begin() + 2, shape.end()));
  const ir::Value channel = ir::Along(n.fn(), DType::kI64, shape[0] * shape[1], 0, 1);
  ir::Dims channels(shape.size(), ir::Dim(1));
  channels[0] = shape[0];
  channels[1] = shape[1];
  const ir::Value first = channel * ir::DimValue(plane, channel);
  indices = indices + n.fn()(ir::Reshape{std::move(channels)}, {first});
  return y;
}

ir::Values Pool(OnnxNode& n, ir::PoolKind kind, ir::Value operand,
                ChannelAxis channels = ChannelAxis::kFirst) {
  const bool with_indices = kind == ir::PoolKind::kMax && n.HasOutput(1);
  const bool column_major = n.Int("storage_order", 0) != 0;
  const bool average = kind == ir::PoolKind::kAverage;
  const bool inside_only = average && !n.Flag("count_include_pad");
  if (!n.Has("kernel_shape")) n.Fail("attribute 'kernel_shape' is missing");
  const size_t axes = SpatialAxesOf(n);
  // f32 holds the bytes whose largest is taken.
  if (!n.status().ok()) return {};
  const DType dtype = operand.type().dtype();
  const bool is_byte = kind == ir::PoolKind::kMax && (dtype == DType::kU8 || dtype == DType::kI8);
  const ir::Value x = is_byte ? ir::convert(operand, DType::kF32) : operand;
  const WindowAttributes w = ReadWindow(n, ListOf(n, "kernel_shape", axes, 1), channels);
  const ir::Pool op{.kind = kind,
                    .kernel = EmptyIfAll(w.kernel, 1),
                    .strides = EmptyIfAll(w.strides, 1),
                    .dilations = EmptyIfAll(w.dilations, 1),
                    .padding = EmptyIfAll(w.pads, 0),
                    .ceil_mode = n.Flag("ceil_mode"),
                    .count_include_pad = average && !inside_only};
  if (!n.status().ok()) return {};
  if (inside_only && !w.before.empty()) return {MeanInside(n, w, op, x)};
  if (with_indices && !w.before.empty())
    n.Fail("padding is not known before the model runs, and the indices are read");
  if (with_indices) {
    ir::Values y = PoolWithIndices(n, op, x, column_major);
    if (is_byte && n.fn().status().ok()) y[0] = ir::convert(y[0], dtype);
    return y;
  }
  const double around = average ? 0 : -std::numeric_limits<double>::infinity();
  const ir::Value y = n.fn()(op, {Padded(n, w, x, around)});
  return {is_byte ? ir::convert(y, dtype) : y};
}

// The attributes of a transposed convolution, with a number for each axis.
struct TransposedAttributes {
  std::vector<int64_t> kernel, strides, dilations, pads, output_padding;
};

// What ConvTranspose's auto_pad and output_shape come to: padding for a result of `want`.
void PadTo(TransposedAttributes& t, std::span<const int64_t> want, bool lower, OnnxNode& n) {
  const size_t axes = t.kernel.size();
  for (size_t a = 0; a < axes; ++a) {
    const ir::Dim& extent = n.type(0).shape()[2 + a];
    if (!want.empty() && !extent.is_constant())
      return n.Fail(
          "output_shape is given for a dimension that is not known before the model runs");
    const int64_t reach = (t.kernel[a] - 1) * t.dilations[a] + 1 + t.output_padding[a];
    // Without output_shape, the result is extent * stride.
    const int64_t total = want.empty() ? reach - t.strides[a]
                                       : (extent.constant() - 1) * t.strides[a] + reach - want[a];
    const int64_t all = std::max<int64_t>(total, 0), half = all / 2;
    if (total < 0) t.output_padding[a] -= total;
    t.pads[a] = lower ? all - half : half;
    t.pads[axes + a] = all - t.pads[a];
  }
}

// output_padding or output_shape: a number for each axis, or nothing.
std::vector<int64_t> SizesOf(OnnxNode& n, std::string_view name, size_t axes) {
  std::vector<int64_t> list = n.Ints(name);
  if (list.empty()) return list;
  constexpr int64_t kMost = int64_t{1} << 31;
  if (name == "output_shape" && list.size() == axes + 2) list.erase(list.begin(), list.begin() + 2);
  if (list.size() != axes ||
      std::ranges::any_of(list, [](int64_t v) { return v < 0 || v > kMost; })) {
    n.Fail("attribute '{}' is [{}]", name, fmt::join(list, ", "));
    list.assign(axes, 0);
  }
  return list;
}

// The kernel of a convolution's weights; fails where the attribute differs or it is not known.
std::vector<int64_t> KernelOf(OnnxNode& n, size_t w = 1) {
  const size_t axes = SpatialAxesOf(n);
  const ir::Type& weight = n.type(w);
  ir::Dims taps;
  if (weight.is_tensor() && weight.shape().size() == axes + 2)
    taps.assign(weight.shape().begin() + 2, weight.shape().end());
  if (taps.empty() || !ir::AllConstant(taps)) {
    n.Fail("weights {} do not match {}", weight.ToText(), n.type(0).ToText());
    return std::vector<int64_t>(axes, 1);
  }
  std::vector<int64_t> kernel = ir::Constants(taps);
  if (n.Has("kernel_shape") && ListOf(n, "kernel_shape", axes, 1) != kernel)
    n.Fail("attribute 'kernel_shape' does not match weights {}", weight.ToText());
  return kernel;
}

ir::Values BuildAveragePool(OnnxNode& n) { return Pool(n, ir::PoolKind::kAverage, n.in(0)); }
ir::Values BuildMaxPool(OnnxNode& n) { return Pool(n, ir::PoolKind::kMax, n.in(0)); }

// (sum |x|^p)^(1 / p), without a share of windows that leave the image.
ir::Values BuildLpPool(OnnxNode& n) {
  const double p = n.since() >= 2 ? static_cast<double>(n.Int("p", 2)) : n.Float("p", 2);
  if (!n.Has("kernel_shape")) n.Fail("attribute 'kernel_shape' is missing");
  if (!(p > 0)) n.Fail("attribute 'p' is {}", p);
  const size_t axes = SpatialAxesOf(n);
  const ir::Value x = n.in(0);
  if (!n.status().ok()) return {};
  const WindowAttributes w = ReadWindow(n, ListOf(n, "kernel_shape", axes, 1));
  const ir::Pool mean{.kind = ir::PoolKind::kAverage,
                      .kernel = EmptyIfAll(w.kernel, 1),
                      .strides = EmptyIfAll(w.strides, 1),
                      .dilations = EmptyIfAll(w.dilations, 1),
                      .padding = EmptyIfAll(w.pads, 0),
                      .ceil_mode = n.Flag("ceil_mode")};
  if (!n.status().ok()) return {};
  const ir::Value wide = Widened(Padded(n, w, x, 0));
  const auto number = [&](double v) { return n.fn()(ir::Fill{v, wide.type().dtype(), {}}, {}); };
  const ir::Value power = p == 2 ? wide * wide : p == 1 ? abs(wide) : pow(abs(wide), number(p));
  const ir::Value sum = ir::SumOfWindows(n.fn(), mean, power);
  const ir::Value y = p == 2 ? sqrt(sum) : p == 1 ? sum : pow(sum, number(1 / p));
  return {Narrowed(y, x.type().dtype())};
}

}  // namespace

ir::Value ChannelsFirst(OnnxNode& n, ir::Value x) {
  const int rank = x.type().rank();
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t a = 1; a < rank - 1; ++a) order.push_back(a);
  return Permuted(n, x, std::move(order));
}

ir::Value ChannelsLast(OnnxNode& n, ir::Value x) {
  const int rank = x.type().rank();
  std::vector<int64_t> order{0};
  for (int64_t a = 2; a < rank; ++a) order.push_back(a);
  order.push_back(1);
  return Permuted(n, x, std::move(order));
}

ir::Value AveragePool(OnnxNode& n, ir::Value x, ChannelAxis channels) {
  const ir::Values y = Pool(n, ir::PoolKind::kAverage, x, channels);
  return y.empty() ? x : y[0];
}

std::optional<PlacedConv> ReadConv(OnnxNode& n, size_t w, ChannelAxis channels) {
  const WindowAttributes window = ReadWindow(n, KernelOf(n, w), channels);
  if (!n.status().ok()) return std::nullopt;
  PlacedConv out{.op = {.groups = n.Int("group", 1)},
                 .before = window.before,
                 .after = window.after,
                 .padded = {}};
  if (window.before.empty()) {
    const auto middle = window.pads.begin() + static_cast<std::ptrdiff_t>(window.kernel.size());
    out.before.assign(window.pads.begin(), middle);
    out.after.assign(middle, window.pads.end());
  }
  out.op.strides = EmptyIfAll(window.strides, 1);
  out.op.dilations = EmptyIfAll(window.dilations, 1);
  out.op.padding = EmptyIfAll(window.pads, 0);
  out.padded = [&n, window](ir::Value v) { return Padded(n, window, v, 0); };
  return out;
}

namespace {

ir::Values BuildConv(OnnxNode& n) {
  const std::optional<PlacedConv> conv = ReadConv(n, 1);
  if (!conv) return {};
  return {n.fn().Add(conv->op, std::array{conv->padded(n.in(0)), n.in(1), n.in(2)})[0]};
}

ir::Values BuildConvTranspose(OnnxNode& n) {
  const int64_t groups = n.Int("group", 1);
  TransposedAttributes t{.kernel = KernelOf(n)};
  const size_t axes = t.kernel.size();
  t.strides = ListOf(n, "strides", axes, 1);
  t.dilations = ListOf(n, "dilations", axes, 1);
  t.pads = ListOf(n, "pads", axes, 0);
  t.output_padding = SizesOf(n, "output_padding", axes);
  if (t.output_padding.empty()) t.output_padding.assign(axes, 0);
  const std::vector<int64_t> want = SizesOf(n, "output_shape", axes);
  const AutoPad automatic = AutoPadOf(n);
  if (!n.status().ok()) return {};
  const bool same = automatic == AutoPad::kUpper || automatic == AutoPad::kLower;
  // An even total of padding is split evenly; SAME_UPPER puts the odd one at the end.
  if (same || !want.empty()) PadTo(t, want, automatic != AutoPad::kUpper, n);
  if (!n.status().ok()) return {};
  const ir::ConvTranspose op{.strides = EmptyIfAll(t.strides, 1),
                             .dilations = EmptyIfAll(t.dilations, 1),
                             .padding = EmptyIfAll(t.pads, 0),
                             .output_padding = EmptyIfAll(t.output_padding, 0),
                             .groups = groups};
  return {n.fn().Add(op, std::array{n.in(0), n.in(1), n.in(2)})[0]};
}

constexpr OnnxOp kWindowOps[] = {
    {"", "AveragePool", 1, 1, 1, BuildAveragePool},
    {"", "Conv", 1, 2, 3, BuildConv},
    {"", "ConvTranspose", 1, 2, 3, BuildConvTranspose},
    {"", "LpPool", 1, 1, 1, BuildLpPool},
    {"", "LpPool", 2, 1, 1, BuildLpPool},
    {"", "LpPool", 18, 1, 1, BuildLpPool},
    {"", "MaxPool", 1, 1, 1, BuildMaxPool},
};

}  // namespace

std::span<const OnnxOp> WindowOps() { return kWindowOps; }

}  // namespace forge::formats
