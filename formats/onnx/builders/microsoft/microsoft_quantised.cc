// SPDX-License-Identifier: Apache-2.0
// Operators of the domain com.microsoft on quantised tensors: what an operator makes of dequantised
// operands, quantised again.
#include <array>
#include <numeric>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/nn/window.h"
#include "formats/onnx/builders/quantised/quantise.h"
#include "formats/onnx/builders/steps.h"
#include "ir/op/axes.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"

namespace forge::formats {
namespace {

// The product of what x is quantised to with b, back in floats.
ir::Values BuildMatMulIntegerToFloat(OnnxNode& n) {
  const ir::Value sum =
      IntegerProduct(n, n.in(0), n.in(1), IntegerZeroPoint(n, 4), IntegerZeroPoint(n, 5));
  ir::Value y = Converted(n, sum, DType::kF32) * (n.in(2) * n.in(3));
  if (n.HasInput(6)) y = y + n.in(6);
  return {y};
}

// What an element-wise operator makes of dequantised operands, quantised again.
ir::Value QuantisedAgain(OnnxNode& n, ir::Value y, size_t scale, size_t zero, DType to) {
  const ir::Value by = Converted(n, n.in(scale), DType::kF32);
  return Quantised(n, y / by, n.HasInput(zero) ? n.in(zero) : ir::Value(), to);
}

ir::Value DequantisedOperand(OnnxNode& n, size_t i) {
  return Dequantised(n, n.in(i), n.in(i + 1), n.HasInput(i + 2) ? n.in(i + 2) : ir::Value());
}

ir::Values BuildQLinearAdd(OnnxNode& n) {
  return {QuantisedAgain(n, DequantisedOperand(n, 0) + DequantisedOperand(n, 3), 6, 7,
                         n.type(0).dtype())};
}
ir::Values BuildQLinearMul(OnnxNode& n) {
  return {QuantisedAgain(n, DequantisedOperand(n, 0) * DequantisedOperand(n, 3), 6, 7,
                         n.type(0).dtype())};
}
ir::Values BuildQLinearSigmoid(OnnxNode& n) {
  const ir::Value y = n.fn()(ir::Sigmoid{}, {DequantisedOperand(n, 0)});
  return {QuantisedAgain(n, y, 3, 4, n.type(0).dtype())};
}
ir::Values BuildQLinearLeakyRelu(OnnxNode& n) {
  constexpr float kAlpha = 0.01f;
  const ir::Value y =
      n.fn()(ir::LeakyRelu{.slope = n.Float("alpha", kAlpha)}, {DequantisedOperand(n, 0)});
  return {QuantisedAgain(n, y, 3, 4, n.type(0).dtype())};
}

// The scale and the zero point of the result are the operands 3 and 4.
template <class Make>
ir::Values OnDequantised(OnnxNode& n, Make make) {
  const ir::Value x = DequantisedOperand(n, 0);
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  return {QuantisedAgain(n, make(x), 3, 4, n.type(0).dtype())};
}

ir::Values BuildQLinearAveragePool(OnnxNode& n) {
  const bool last = n.Flag("channels_last");
  if (!HasRank(n, 0, 3, 5)) return {};
  return OnDequantised(n, [&](ir::Value x) {
    if (!last) return AveragePool(n, x);
    const ir::Value y = AveragePool(n, ChannelsFirst(n, x), ChannelAxis::kLast);
    return n.status().ok() && n.fn().status().ok() ? ChannelsLast(n, y) : y;
  });
}

ir::Values BuildQLinearGlobalAveragePool(OnnxNode& n) {
  if (!HasRank(n, 0, 3, 64)) return {};
  std::vector<int64_t> axes(static_cast<size_t>(n.type(0).rank() - 2));
  std::iota(axes.begin(), axes.end(), n.Flag("channels_last") ? 1 : 2);
  return OnDequantised(n,
                       [&](ir::Value x) { return ir::ReduceAxes(ir::ReduceKind::kMean, x, axes); });
}

ir::Values BuildQLinearReduceMean(OnnxNode& n) {
  const ir::Reduce mean{
      .kind = ir::ReduceKind::kMean, .axes = n.Ints("axes"), .keep_dims = n.Flag("keepdims", true)};
  return OnDequantised(n, [&](ir::Value x) { return n.fn()(mean, {x}); });
}

// Before opset 13 everything from the axis on is one row.
ir::Values BuildQLinearSoftmax(OnnxNode& n) {
  const int64_t opset = n.Int("opset", 13), axis = n.Int("axis", -1);
  if (!HasRank(n, 0, 1, 64)) return {};
  const absl::StatusOr<int64_t> at = ir::NormalAxis(axis, n.type(0).rank());
  if (!at.ok()) n.Fail("{}", Message(at.status()));
  return OnDequantised(n, [&](ir::Value x) {
    if (opset >= 13) return n.fn()(ir::Softmax{.axis = *at}, {x});
    const ir::Dims shape = x.type().shape();
    const std::span<const ir::Dim> all(shape);
    const auto first = static_cast<size_t>(*at);
    const ir::Value rows =
        ReshapedTo(n, x, {ir::Product(all.first(first)), ir::Product(all.subspan(first))});
    return ReshapedTo(n, n.fn()(ir::Softmax{.axis = -1}, {rows}), shape);
  });
}

// Scale and zero point of the result, then tensor, scale and zero point of each part.
ir::Values BuildQLinearConcat(OnnxNode& n) {
  if (!n.Has("axis")) n.Fail("attribute 'axis' is missing");
  const int64_t axis = n.Int("axis", 0);
  if (n.inputs() < 5 || n.inputs() % 3 != 2) n.Fail("it has {} inputs", n.inputs());
  ir::Values parts;
  for (size_t i = 2; i + 2 < n.inputs(); i += 3) parts.push_back(DequantisedOperand(n, i));
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  return {QuantisedAgain(n, n.fn().Add(ir::Concat{axis}, parts)[0], 0, 1, n.type(2).dtype())};
}

ir::Values BuildQLinearWhere(OnnxNode& n) {
  const ir::Value y =
      n.fn()(ir::Select{}, {n.in(0), DequantisedOperand(n, 1), DequantisedOperand(n, 4)});
  return {QuantisedAgain(n, y, 7, 8, n.type(1).dtype())};
}

// alpha a b + c, where c is quantised by the product of both scales; floats without a scale.
ir::Values BuildQGemm(OnnxNode& n) {
  const bool transpose_a = n.Flag("transA"), transpose_b = n.Flag("transB");
  const double alpha = n.Float("alpha", 1);
  if (!HasRank(n, 0, 2, 2) || !HasRank(n, 3, 2, 2)) return {};
  const auto matrix = [&](size_t i, bool transpose) {
    return transpose ? Permuted(n, n.in(i), {1, 0}) : n.in(i);
  };
  ir::Value sum = IntegerProduct(n, matrix(0, transpose_a), matrix(3, transpose_b),
                                 IntegerZeroPoint(n, 2), IntegerZeroPoint(n, 5));
  if (n.HasInput(6)) sum = sum + n.in(6);
  const ir::Value y = Converted(n, sum, DType::kF32) * (n.in(1) * n.in(4)) * alpha;
  if (!n.HasInput(7)) return {y};
  return {QuantisedAgain(n, y, 7, 8, n.type(0).dtype())};
}

// a, quantised on its range, times b.
ir::Values BuildDynamicQuantizeMatMul(OnnxNode& n) {
  const DynamicallyQuantised a = QuantisedOnItsRange(n, n.in(0));
  if (!n.fn().status().ok()) return {};
  const ir::Value zero = n.fn()(ir::Cast{DType::kI32}, {a.zero});
  const ir::Value sum = IntegerProduct(n, a.value, n.in(1), zero, IntegerZeroPoint(n, 3));
  ir::Value y = Converted(n, sum, DType::kF32) * (a.scale * n.in(2));
  if (n.HasInput(4)) y = y + n.in(4);
  return {y};
}

constexpr OnnxOp kMicrosoftQuantisedOps[] = {
    {kMicrosoft, "DynamicQuantizeMatMul", 1, 3, 5, BuildDynamicQuantizeMatMul},
    {kMicrosoft, "MatMulIntegerToFloat", 1, 4, 7, BuildMatMulIntegerToFloat},
    {kMicrosoft, "QGemm", 1, 6, 9, BuildQGemm},
    {kMicrosoft, "QLinearAdd", 1, 7, 8, BuildQLinearAdd},
    {kMicrosoft, "QLinearAveragePool", 1, 4, 5, BuildQLinearAveragePool},
    {kMicrosoft, "QLinearConcat", 1, 5, kAnyNumber, BuildQLinearConcat},
    {kMicrosoft, "QLinearGlobalAveragePool", 1, 5, 5, BuildQLinearGlobalAveragePool},
    {kMicrosoft, "QLinearLeakyRelu", 1, 4, 5, BuildQLinearLeakyRelu},
    {kMicrosoft, "QLinearMul", 1, 7, 8, BuildQLinearMul},
    {kMicrosoft, "QLinearReduceMean", 1, 4, 5, BuildQLinearReduceMean},
    {kMicrosoft, "QLinearSigmoid", 1, 4, 5, BuildQLinearSigmoid},
    {kMicrosoft, "QLinearSoftmax", 1, 4, 5, BuildQLinearSoftmax},
    {kMicrosoft, "QLinearWhere", 1, 9, 9, BuildQLinearWhere},
};

}  // namespace

std::span<const OnnxOp> MicrosoftQuantisedOps() { return kMicrosoftQuantisedOps; }

}  // namespace forge::formats
