// SPDX-License-Identifier: Apache-2.0
// Models that were quantised statically spell a convolution of bytes as one of floats between
// DequantizeLinear and QuantizeLinear. With x = s (i - z) and w = t (j - u) the sum of products is
// s t (sum of i j - u sum of i - z sum of (j - u)), where the last sum is a constant.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/conv_integer.h"
#include "ir/passes/passes.h"
#include "ir/passes/patterns.h"

namespace forge::ir {
namespace {

constexpr int64_t kMostTerms = INT32_MAX / (255 * 255);  // that i32 holds

// (number - zero) * scale, where number is i8 or u8.
struct Dequantised {
  Value number;
  double zero;
  Value scale;
};

std::optional<Dequantised> DequantisedOf(Function& f, Value v) {
  const Node* product = v ? DefiningNode<Mul>(f, v.id) : nullptr;
  if (product == nullptr || v.type().dtype() != DType::kF32) return std::nullopt;
  for (size_t i : {0, 1}) {
    const Line line = LineOf(f, product->in[i]);
    const Node* cast = DefiningNode<Cast>(f, line.x);
    if (cast == nullptr || line.slope != 1 || !(f.type(line.x) == v.type())) continue;
    const Value number = f.value(cast->in[0]);
    const DType t = number.type().dtype();
    if ((t != DType::kI8 && t != DType::kU8) || line.offset != std::round(line.offset) ||
        std::abs(line.offset) > 255)
      continue;
    return Dequantised{number, -line.offset, f.value(product->in[1 - i])};
  }
  return std::nullopt;
}

bool IsOneNumber(const Type& t) { return t.is_tensor() && t.elements() == Dim(1); }

struct Factors {
  Dequantised x, w;
};

// Both factors, where the first one has one scale, and the second one a known shape.
std::optional<Factors> FactorsOf(Function& f, ValueSpan in) {
  auto x = DequantisedOf(f, in[0]), w = DequantisedOf(f, in[1]);
  if (!x || !w || !IsOneNumber(x->scale.type()) || !w->number.type().is_constant())
    return std::nullopt;
  return Factors{*x, *w};
}

// Of numbers without their zero point, where `zero` says so.
Value SumOf(Value number, std::vector<int64_t> axes, double zero = 0) {
  const Value wide = (*number.fn)(Cast{DType::kI32}, {number});
  return ReduceAxes(ReduceKind::kSum, zero == 0 ? wide : wide - zero, std::move(axes));
}

// The sum of products as f32: `sum` without what the zero point of x adds to it.
Value Scaled(const Factors& by, Value sum, Value of_weights, Value scale) {
  Function& f = *sum.fn;
  if (by.x.zero != 0) sum = sum - of_weights * by.x.zero;
  const Value y = f(Cast{DType::kF32}, {sum});
  const std::optional<double> of_x = NumberOf(f, by.x.scale.id), of_w = NumberOf(f, scale.id);
  if (of_x && of_w) return y * static_cast<float>(*of_x * *of_w);
  return y * (of_x ? scale * *of_x : scale * f(Reshape{{}}, {by.x.scale}));
}

// The sum of products, where the target has a kernel for it.
std::optional<Value> SumOfProducts(Function& f, const AnyOp& op, Value x, Value w,
                                   const Target& target) {
  const Types in{x.type(), w.type()};
  const auto y = op.Infer(in);
  if (!y.ok() || !target.Supports({op, in, *y})) return std::nullopt;
  return f(op, {x, w});
}

std::optional<Values> Product(Function& f, const MatMul& op, ValueSpan in, const Target& target) {
  const auto by = FactorsOf(f, in);
  if (!by || by->w.number.type().rank() != 2 || (op.transpose_a && by->w.zero != 0))
    return std::nullopt;
  const Dims &b = by->w.number.type().shape(), &scale = by->w.scale.type().shape();
  const size_t depth = op.transpose_b ? 1 : 0;
  const bool of_columns = !op.transpose_b && !scale.empty() && scale.back() == b[1] &&
                          by->w.scale.type().elements() == b[1];
  if (b[depth].constant() > kMostTerms || (!of_columns && !IsOneNumber(by->w.scale.type())))
    return std::nullopt;
  auto sum = SumOfProducts(f, MatMulInteger{op.transpose_a, op.transpose_b}, by->x.number,
                           by->w.number, target);
  if (!sum) return std::nullopt;
  const Dims columns{b[1 - depth]};
  const Value of_weights =
      f(Reshape{columns}, {SumOf(by->w.number, {static_cast<int64_t>(depth)}, by->w.zero)});
  if (by->w.zero != 0) *sum = *sum - SumOf(by->x.number, {-1}) * by->w.zero;
  return Values{
      Scaled(*by, *sum, of_weights, of_columns ? f(Reshape{columns}, {by->w.scale}) : by->w.scale)};
}

// x, padded with what stands for 0.
Value PaddedImage(Function& f, const Dequantised& x, std::span<const int64_t> padding) {
  if (padding.empty()) return x.number;
  Pad pad{.before = {0, 0}, .after = {0, 0}, .value = x.zero};
  const size_t axes = padding.size() / 2;
  pad.before.insert(pad.before.end(), padding.begin(), padding.begin() + axes);
  pad.after.insert(pad.after.end(), padding.begin() + axes, padding.end());
  return f(pad, {x.number});
}

std::optional<Values> Convolution(Function& f, const Conv& op, ValueSpan in, const Target& target) {
  const auto by = FactorsOf(f, in);
  if (!by || by->w.zero != 0) return std::nullopt;  // sums of windows cost as much as products
  const Dims &w = by->w.number.type().shape(), &scale = by->w.scale.type().shape();
  const bool of_channels =
      scale.size() == w.size() && scale[0] == w[0] && by->w.scale.type().elements() == w[0];
  if (by->w.number.type().elements().constant() / std::max<int64_t>(w[0].constant(), 1) >
          kMostTerms ||
      (!of_channels && !IsOneNumber(by->w.scale.type())))
    return std::nullopt;
  const ConvInteger made{.strides = op.strides, .dilations = op.dilations, .groups = op.groups};
  const Value x = PaddedImage(f, by->x, op.padding);
  if (!f.status().ok()) return std::nullopt;
  const auto sum = SumOfProducts(f, made, x, by->w.number, target);
  if (!sum) return std::nullopt;
  std::vector<int64_t> axes(w.size() - 1);
  std::iota(axes.begin(), axes.end(), 1);
  const Value of_weights = SumOf(by->w.number, axes);
  Dims channels(w.size() - 1, Dim(1));
  channels[0] = w[0];
  Value y = Scaled(*by, *sum, f(Reshape{channels}, {of_weights}),
                   of_channels ? f(Reshape{channels}, {by->w.scale}) : by->w.scale);
  if (in.size() > 2 && in[2]) y = y + f(Reshape{channels}, {in[2]});
  return Values{y};
}

}  // namespace

absl::Status MultiplyIntegers(const Function& in, Function& out, const Target& target) {
  if (!target.MultipliesBytes()) return Rewriter{.pass = "integers"}.Run(in, out);
  const std::vector<bool> is_static = StaticValuesOf(in);
  auto rule = [&](Function& f, const Node& node, ValueSpan operands) -> std::optional<Values> {
    if (node.in.size() < 2 || node.in[1] == kAbsent || !is_static[node.in[1]]) return std::nullopt;
    if (const auto* op = node.op.As<MatMul>()) return Product(f, *op, operands, target);
    if (const auto* op = node.op.As<Conv>()) return Convolution(f, *op, operands, target);
    return std::nullopt;
  };
  Function made(in.name(), in.module());
  FORGE_RETURN_IF_ERROR((Rewriter{.pass = "integers"}.Run(in, made, rule)));
  // What products of floats were made of is now read by nobody.
  return Rewriter{.pass = "integers"}.Run(made, out);
}

}  // namespace forge::ir
