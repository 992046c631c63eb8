// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers.
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/quantise.h"
#include "formats/onnx/builders/steps.h"
#include "formats/onnx/builders/window.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/spatial/conv.h"

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

// The channels of each group from `begin` to `end`.
ir::Value ChannelsOfGroups(OnnxNode& n, ir::Value x, int64_t groups, int64_t begin, int64_t end) {
  if (groups == 1) return Part(n, x, 1, begin, end);
  ir::Dims shape = x.type().shape();
  ir::Dims apart = shape;
  apart[1] = groups;
  apart.insert(apart.begin() + 2, ir::FloorDiv(shape[1], groups));
  shape[1] = groups * (end - begin);
  return ReshapedTo(n, Part(n, ReshapedTo(n, x, apart), 2, begin, end), shape);
}

// A convolution of integers of at most 8 bits and a sign, exact in i32: f32 adds so few channels at
// a time that each sum is below 2^24.
ir::Value IntegerConvolution(OnnxNode& n, const ir::Conv& op, ir::Value x, ir::Value w) {
  constexpr int64_t kMostTerms = (int64_t{1} << 24) / (255 * 255);
  const ir::Dims shape = w.type().shape();
  int64_t taps = 1;
  for (size_t a = 2; a < shape.size(); ++a) taps *= std::max<int64_t>(1, shape[a].constant());
  if (!shape[1].is_constant() || taps > kMostTerms || op.groups < 1) {
    n.Fail("weights {} in {} groups; at most {} taps are supported", w.type().ToText(), op.groups,
           kMostTerms);
    return x;
  }
  const int64_t channels = shape[1].constant(), each = kMostTerms / taps;
  ir::Value sum;
  for (int64_t c = 0; c < channels; c += each) {
    const int64_t end = std::min(c + each, channels);
    const bool all = end - c == channels;
    const ir::Value part = all ? x : ChannelsOfGroups(n, x, op.groups, c, end);
    const ir::Value y = n.fn()(op, {part, all ? w : Part(n, w, 1, c, end)});
    const ir::Value whole = n.fn()(ir::Cast{DType::kI32}, {y});
    sum = sum ? sum + whole : whole;
  }
  if (!sum) n.Fail("weights {} have no channels", w.type().ToText());
  return sum ? sum : x;
}

// (x - x0) as f32, where a list has one zero point for each slice of `axis`.
ir::Value Shifted(OnnxNode& n, size_t x, size_t zero, int64_t axis) {
  const ir::Value wide = Converted(n, n.in(x), DType::kF32);
  if (!n.HasInput(zero) || n.ConstantNumber(zero) == 0) return wide;
  return wide - Converted(n, AlongAxis(n, n.in(zero), n.type(x), axis), DType::kF32);
}

ir::Values BuildConvInteger(OnnxNode& n) {
  const std::optional<PlacedConv> conv = ReadConv(n, 1);
  if (!conv) return {};
  const ir::Value x = conv->padded(Shifted(n, 0, 2, 0)), w = Shifted(n, 1, 3, 0);
  if (!n.status().ok()) return {};
  return {IntegerConvolution(n, conv->op, x, w)};
}

ir::Values BuildQLinearConv(OnnxNode& n) {
  const std::optional<PlacedConv> conv = ReadConv(n, 3);
  if (!conv) return {};
  const ir::Value x = conv->padded(Shifted(n, 0, 2, 0)), w = Shifted(n, 3, 5, 0);
  if (!n.status().ok()) return {};
  ir::Value sum = IntegerConvolution(n, conv->op, x, w);
  const ir::Type& y = sum.type();
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const auto channels = [&](size_t i) { return AlongAxis(n, n.in(i), y, 1); };
  const auto f32 = [&](ir::Value v) { return Converted(n, v, DType::kF32); };
  if (n.HasInput(8)) sum = sum + channels(8);
  const ir::Value factor = f32(channels(1)) * f32(channels(4)) / f32(channels(6));
  return {Quantised(n, f32(sum) * factor, channels(7), n.type(7).dtype())};
}

constexpr OnnxOp kQuantisedProductsOps[] = {
    {"", "ConvInteger", 10, 2, 4, BuildConvInteger},
    {"", "MatMulInteger", 10, 2, 4, BuildMatMulInteger},
    {"", "QLinearConv", 10, 8, 9, BuildQLinearConv},
    {"", "QLinearMatMul", 10, 8, 8, BuildQLinearMatMul},
};

}  // namespace

std::span<const OnnxOp> QuantisedProductsOps() { return kQuantisedProductsOps; }

}  // namespace forge::formats
