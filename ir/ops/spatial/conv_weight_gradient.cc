// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/conv_weight_gradient.h"

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/spatial/conv_gradient.h"
#include "ir/ops/spatial/window.h"

namespace forge::ir {

absl::StatusOr<Types> ConvWeightGradient::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &dy = in[1].shape();
  if (kernel.size() + 2 != x.size())
    return InvalidArgument("kernel has {} numbers, not {}", kernel.size(), x.size() - 2);
  if (groups < 1) return InvalidArgument("groups of {}", groups);
  if (x[1].is_constant() && x[1].constant() % groups != 0)
    return InvalidArgument("groups {} does not divide {} channels", groups, x[1].ToText());
  if (dy.size() != x.size()) return InvalidArgument("dy {} for {}", ToText(dy), ToText(x));
  Dims weight{dy[1], FloorDiv(x[1], groups)};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  const Type operands[] = {in[0], Type::Tensor(in[0].dtype(), weight)};
  FORGE_ASSIGN_OR_RETURN(const Types y, forward().infer(operands));
  if (!MayEqual(std::span(y[0].shape()).subspan(2), std::span(dy).subspan(2)))
    return InvalidArgument("the convolution gives {}, dy is {}", y[0].ToText(), in[1].ToText());
  return Types{operands[1]};
}

// x[k, groups * n, ..] and dy[m, n, ..] give [k, m, r..].
Values ConvWeightGradient::decompose(Function& f, ValueSpan in) const {
  const Value x = in[0], dy = in[1];
  const Dims shape = x.type().shape();
  const Dim channels = FloorDiv(shape[1], groups);  // of a group
  Dims split{shape[0], groups, channels}, joined{channels, groups * shape[0]};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  joined.insert(joined.end(), shape.begin() + 2, shape.end());
  std::vector<int64_t> order{2, 1, 0}, swap{1, 0};
  for (size_t a = 2; a < shape.size(); ++a) {
    order.push_back(static_cast<int64_t>(a) + 1);
    swap.push_back(static_cast<int64_t>(a));
  }
  const Value windows =
      f(Reshape{joined}, {f(Transpose{std::move(order)}, {f(Reshape{split}, {x})})});
  const Conv by{.strides = dilations, .dilations = strides, .padding = padding, .groups = groups};
  const Value taps = f(by, {windows, f(Transpose{swap}, {dy})});
  if (!f.status().ok()) return {taps};
  Dims weight{dy.type().shape()[1], channels};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  return {FirstElements(f(Transpose{swap}, {taps}), weight)};
}

Cost ConvWeightGradient::cost(TypeSpan in) const {
  const Dims& dy = in[1].shape();
  const Dim terms = dy[0] * Product(Dims(dy.begin() + 2, dy.end()));
  const auto out = infer(in);
  return {.flops = out.ok() ? out->front().elements() * terms * 2 : Dim(0), .terms = terms};
}

Cases ConvWeightGradient::cases() {
  using Op = ConvWeightGradient;
  return {
      {Op{.kernel = {3, 3}}, {"float[2,3,8,9]", "float[2,4,6,7]"}},
      {Op{.kernel = {1, 1}}, {"float[3,5,4,4]", "float[3,6,4,4]"}},
      {Op{.kernel = {3, 2}, .strides = {2, 1}, .padding = {1, 0, 2, 1}},
       {"float[2,4,7,7]", "float[2,6,4,7]"}},
      {Op{.kernel = {2, 3}, .dilations = {2, 3}, .padding = {2, 3, 2, 3}},
       {"f32[1,2,9,11]", "f32[1,3,11,11]"}},
      {Op{.kernel = {2, 5}, .strides = {2, 3}, .dilations = {3, 1}, .padding = {0, 1, 4, 0}},
       {"f32[2,7,13,10]", "f32[2,5,7,3]"}},
      {Op{.kernel = {3, 3}, .padding = {-1, 1, 0, -2}}, {"f32[1,3,8,8]", "f32[1,2,5,5]"}},
      {Op{.kernel = {3, 3}, .groups = 2}, {"float[2,6,5,5]", "float[2,4,3,3]"}},
      {Op{.kernel = {3, 3}, .padding = {1, 1, 1, 1}, .groups = 4},
       {"f32[2,4,6,6]", "f32[2,4,6,6]"}},
      {Op{.kernel = {3, 3}, .padding = {1, 1, 1, 1}}, {"f32[3,17,15,17]", "f32[3,35,15,17]"}},
      {Op{.kernel = {3, 3}, .strides = {2, 2}, .padding = {1, 1, 1, 1}},
       {"f32[2,32,16,16]", "f32[2,48,8,8]"}},
      {Op{.kernel = {3, 3}, .padding = {1, 1, 1, 1}}, {"f32[21,1,28,28]", "f32[21,5,28,28]"}},
      {Op{.kernel = {3}, .strides = {3}, .dilations = {2}, .padding = {4, 1}, .groups = 2},
       {"float[2,6,17]", "float[2,8,6]"}},
      {Op{.kernel = {2, 3, 1}}, {"float[1,2,5,6,7]", "float[1,3,4,4,7]"}},
      {Op{.kernel = {3, 3}}, {"f32[0,3,8,8]", "f32[0,4,6,6]"}},
      {Op{.kernel = {3}}, {"f32[2,0,8]", "f32[2,4,6]"}},
      {.op = Op{.kernel = {3, 3}, .padding = {1, 1, 1, 1}},
       .in = {"f32[16,64,16,16]", "f32[16,64,16,16]"},
       .bench = true},
      {.op = Op{.kernel = {3, 3}, .padding = {1, 1, 1, 1}},
       .in = {"f32[16,512,2,2]", "f32[16,512,2,2]"},
       .bench = true},
      {.op = Op{.kernel = {7, 7}, .strides = {2, 2}, .padding = {3, 3, 3, 3}},
       .in = {"f32[16,3,64,64]", "f32[16,64,32,32]"},
       .bench = true},
      {Op{.kernel = {3}}, {"f32[1,4,6,6]", "f32[1,8,4,4]"}, "kernel has 1 numbers, not 2"},
      {Op{.kernel = {3, 3}}, {"f32[1,4,6,6]", "f32[1,8,4,5]"}, "dy is f32[1, 8, 4, 5]"},
      {Op{.kernel = {3, 3}, .groups = 3}, {"f32[1,4,6,6]", "f32[1,6,4,4]"}, "does not divide 4"},
      {Op{.kernel = {3, 3}, .groups = 2}, {"f32[1,4,6,6]", "f32[1,5,4,4]"}, "does not divide 5"},
      {Op{.kernel = {7, 3}}, {"f32[1,4,6,6]", "f32[1,8,1,4]"}, "does not fit"}};
}

FORGE_DEFINE_OP(ConvWeightGradient)

}  // namespace forge::ir
