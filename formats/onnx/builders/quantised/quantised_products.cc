// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers.
#include <numeric>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/nn/window.h"
#include "formats/onnx/builders/quantised/quantise.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/spatial/conv_integer.h"

namespace forge::formats {

// As sums of bytes: a b - a0 (b - b0) - b0 a.
ir::Value IntegerProduct(OnnxNode& n, ir::Value a, ir::Value b, ir::Value a0, ir::Value b0) {
  const auto sums = [](ir::Value x, int64_t axis) {
    return ir::ReduceAxes(ir::ReduceKind::kSum, x, {axis});
  };
  const auto wide = [&](ir::Value x) { return n.fn()(ir::Cast{DType::kI32}, {x}); };
  return ProductOf(n, a, b, [&](ir::Value left, ir::Value right) {
    const ir::Value product = n.fn()(ir::MatMulInteger{}, {left, right});
    ir::Value y = product;
    if (a0) y = y - a0 * sums(b0 ? wide(right) - b0 : wide(right), -2);
    if (b0) y = y - b0 * sums(wide(left), -1);
    if (y.type().is_tensor() && product.type().is_tensor() &&
        !(y.type().shape() == product.type().shape()))
      n.Fail("the zero points do not match the rows of a and the columns of b");
    return y;
  });
}

ir::Value IntegerZeroPoint(OnnxNode& n, size_t i) {
  if (!n.HasInput(i) || n.ConstantNumber(i) == 0) return {};
  return n.fn()(ir::Cast{DType::kI32}, {n.in(i)});
}

namespace {

// A list with one element for each row of a matrix, as a column; numbers and tensors as they are.
ir::Value AsColumn(OnnxNode& n, ir::Value v) {
  if (!v.type().is_tensor() || v.type().rank() != 1) return v;
  return ReshapedTo(n, v, {v.type().shape()[0], 1});
}

// Zero points are numbers, vectors of one for each row of a and column of b, or tensors of such
// rows and columns.
ir::Values BuildMatMulInteger(OnnxNode& n) {
  ir::Value a0 = IntegerZeroPoint(n, 2);
  if (a0) a0 = AsColumn(n, a0);
  return {IntegerProduct(n, n.in(0), n.in(1), a0, IntegerZeroPoint(n, 3))};
}

ir::Values BuildQLinearMatMul(OnnxNode& n) {
  const auto f32 = [&](size_t i) { return Converted(n, n.in(i), DType::kF32); };
  ir::Value a0 = IntegerZeroPoint(n, 2);
  if (a0) a0 = AsColumn(n, a0);
  const ir::Value sum = IntegerProduct(n, n.in(0), n.in(3), a0, IntegerZeroPoint(n, 5));
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const ir::Value factor = AsColumn(n, f32(1)) * f32(4) / AsColumn(n, f32(6));
  const ir::Value scaled = Converted(n, sum, DType::kF32) * factor;
  if (!n.fn().status().ok()) return {};
  if (!(scaled.type().shape() == sum.type().shape()))
    n.Fail("the scales do not match the rows of a and the columns of b");
  return {Quantised(n, scaled, AsColumn(n, n.in(7)), n.type(7).dtype())};
}

// The image, its channels first, and which operands are its zero point, the weights and theirs.
struct ConvOperands {
  ir::Value x;
  size_t x0 = 0, w = 0, w0 = 0;
};

// The image with its zero point around it.
ir::Value PaddedImage(OnnxNode& n, const PlacedConv& conv, const ConvOperands& of) {
  ir::Pad pad{.before = {0, 0}, .after = {0, 0}};
  pad.before.insert(pad.before.end(), conv.before.begin(), conv.before.end());
  pad.after.insert(pad.after.end(), conv.after.begin(), conv.after.end());
  const ir::Value x = of.x;
  if (!n.HasInput(of.x0)) return n.fn()(pad, {x});
  if (const std::optional<Number> zero = n.ConstantNumber(of.x0)) {
    pad.value = *zero;
    return n.fn()(pad, {x});
  }
  const ir::Value inside = n.fn()(ir::Fill{1, DType::kBool, x.type().shape()}, {});
  return n.fn()(ir::Select{},
                {n.fn()(pad, {inside}), n.fn()(pad, {x}), ReshapedTo(n, n.in(of.x0), {})});
}

// The sums of the windows of `x`, for each of `channels` results.
ir::Value WindowSums(OnnxNode& n, const ir::ConvInteger& op, ir::Value x, const ir::Type& w) {
  ir::Dims ones = w.shape();
  const ir::Dim channels = ones[0];
  ones[0] = op.groups;
  const ir::Value sums = n.fn()(op, {x, n.fn()(ir::Fill{1, DType::kU8, ones}, {})});
  if (op.groups == 1 || !n.fn().status().ok()) return sums;
  ir::Dims shape = sums.type().shape(), apart = shape;
  apart.insert(apart.begin() + 2, 1);
  const ir::Value each = ReshapedTo(n, sums, apart);
  apart[2] = ir::FloorDiv(channels, op.groups);
  shape[1] = channels;
  return ReshapedTo(n, n.fn()(ir::BroadcastTo{apart}, {each}), shape);
}

// Has each window of these weights one channel, and no more elements than f32 sums exactly?
bool IsDepthwise(const ir::Type& weights) {
  const ir::Dims& w = weights.shape();
  const ir::Dim taps = ir::Product(std::span(w).subspan(2));
  return w[1] == ir::Dim(1) && taps.is_constant() && taps.constant() <= ir::kExactTerms;
}

// The sum of (x - x0) (w - w0) of each window of one channel, which f32 holds.
ir::Value DepthwiseConvolution(OnnxNode& n, const PlacedConv& conv, const ConvOperands& of) {
  const auto f32 = [&](ir::Value v) { return Converted(n, v, DType::kF32); };
  ir::Value x = f32(of.x), w = f32(n.in(of.w));
  if (n.HasInput(of.x0)) x = x - ReshapedTo(n, f32(n.in(of.x0)), {});
  if (n.HasInput(of.w0)) w = w - f32(AlongAxis(n, n.in(of.w0), n.type(of.w), 0));
  if (!n.status().ok() || !n.fn().status().ok()) return x;
  return n.fn()(ir::Cast{DType::kI32}, {n.fn()(conv.op, {conv.padded(x), w})});
}

// The sum of (x - x0) (w - w0) in i32, as that of x w - x0 (w - w0) - w0 x.
ir::Value IntegerConvolution(OnnxNode& n, const PlacedConv& conv, const ConvOperands& of) {
  if (n.HasInput(of.x0) && !(n.type(of.x0).elements() == ir::Dim(1)))
    n.Fail("the zero point of x is {}, not one number", n.type(of.x0).ToText());
  constexpr DTypes kBytes = Bit(DType::kI8) | Bit(DType::kU8);
  if (!Has(kBytes, of.x.type().dtype()) || !Has(kBytes, n.type(of.w).dtype()))
    n.Fail("{} and {} are no bytes", of.x.type().ToText(), n.type(of.w).ToText());
  if (!n.status().ok()) return of.x;
  if (IsDepthwise(n.type(of.w))) return DepthwiseConvolution(n, conv, of);
  const auto wide = [&](ir::Value v) { return n.fn()(ir::Cast{DType::kI32}, {v}); };
  const ir::ConvInteger op{conv.op.strides, conv.op.dilations, conv.op.groups};
  const ir::Value x = PaddedImage(n, conv, of);
  ir::Value weights = n.in(of.w), sum = n.fn()(op, {x, weights});
  if (!n.status().ok() || !n.fn().status().ok()) return sum;
  const ir::Value x0 = IntegerZeroPoint(n, of.x0), w0 = IntegerZeroPoint(n, of.w0);
  if (w0) {
    sum = sum - AlongAxis(n, w0, sum.type(), 1) * WindowSums(n, op, x, weights.type());
    weights = wide(weights) - AlongAxis(n, w0, weights.type(), 0);
  }
  if (!x0 || !n.status().ok() || !n.fn().status().ok()) return sum;
  std::vector<int64_t> axes(static_cast<size_t>(weights.type().rank() - 1));
  std::iota(axes.begin(), axes.end(), 1);
  ir::Dims channels(axes.size(), 1);
  channels[0] = weights.type().shape()[0];
  const ir::Value of_weights = ir::ReduceAxes(ir::ReduceKind::kSum, wide(weights), axes);
  return sum - ReshapedTo(n, x0, {}) * ReshapedTo(n, of_weights, channels);
}

ir::Values BuildConvInteger(OnnxNode& n) {
  const std::optional<PlacedConv> conv = ReadConv(n, 1);
  if (!conv) return {};
  return {IntegerConvolution(n, *conv, {.x = n.in(0), .x0 = 2, .w = 1, .w0 = 3})};
}

ir::Values QLinearConv(OnnxNode& n, ChannelAxis axis) {
  const std::optional<PlacedConv> conv = ReadConv(n, 3, axis);
  if (!conv) return {};
  const ir::Value x = axis == ChannelAxis::kFirst ? n.in(0) : ChannelsFirst(n, n.in(0));
  ir::Value sum = IntegerConvolution(n, *conv, {.x = x, .x0 = 2, .w = 3, .w0 = 5});
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const ir::Type& y = sum.type();
  const auto channels = [&](size_t i) { return AlongAxis(n, n.in(i), y, 1); };
  const auto f32 = [&](ir::Value v) { return Converted(n, v, DType::kF32); };
  if (n.HasInput(8)) sum = sum + channels(8);
  const ir::Value factor = f32(channels(1)) * f32(channels(4)) / f32(channels(6));
  const ir::Value result = Quantised(n, f32(sum) * factor, channels(7), n.type(7).dtype());
  return {axis == ChannelAxis::kFirst ? result : ChannelsLast(n, result)};
}

ir::Values BuildQLinearConv(OnnxNode& n) { return QLinearConv(n, ChannelAxis::kFirst); }
ir::Values BuildQLinearConvOfEitherLayout(OnnxNode& n) {
  return QLinearConv(n, n.Flag("channels_last") ? ChannelAxis::kLast : ChannelAxis::kFirst);
}

constexpr OnnxOp kQuantisedProductsOps[] = {
    {"", "ConvInteger", 10, 2, 4, BuildConvInteger},
    {"", "MatMulInteger", 10, 2, 4, BuildMatMulInteger},
    {"", "QLinearConv", 10, 8, 9, BuildQLinearConv},
    {kMicrosoft, "QLinearConv", 1, 8, 9, BuildQLinearConvOfEitherLayout},
    {"", "QLinearMatMul", 10, 8, 8, BuildQLinearMatMul},
};

}  // namespace

std::span<const OnnxOp> QuantisedProductsOps() { return kQuantisedProductsOps; }

}  // namespace forge::formats
