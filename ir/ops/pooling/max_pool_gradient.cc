// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/pooling/max_pool_gradient.h"

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/pooling/max_pool.h"
#include "ir/ops/pooling/window_taps.h"

namespace forge::ir {

Pool MaxPoolGradient::forward() const {
  return {.kernel = kernel,
          .strides = strides,
          .dilations = dilations,
          .padding = padding,
          .ceil_mode = ceil_mode,
          .indices = true};
}

absl::StatusOr<Types> MaxPoolGradient::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const Types y, forward().infer(in.first(1)));
  if (!MayEqual(y[0].shape(), in[1].shape()))
    return InvalidArgument("the pool gives {}, dy is {}", y[0].ToText(), in[1].ToText());
  return Types{Type::Tensor(in[0].dtype(), in[0].shape())};
}

// Each element reads the few windows that it may lie in, which fuses to one kernel; where they are
// many, a scatter is quicker.
Values MaxPoolGradient::decompose(Function& f, ValueSpan in) const {
  constexpr int64_t kMostTerms = 16;
  const Dims& shape = in[0].type().shape();
  const Pool op = forward();
  const Value indices = f.Add(op, in.first(1))[1], dy = Widened(in[1]);
  if (!f.status().ok()) return {in[0]};
  const Window window = WindowOver(op, shape.size());
  const std::vector<int64_t> size = ForEachAxis(kernel, shape.size() - 2, 1);
  std::vector<TapAxis> axes = TapAxes(window, size, in[1].type().shape());
  bool dilated = false;
  for (const WindowAxis& w : window) dilated |= w.dilation != 1;
  for (TapAxis& a : axes) {
    const Dim& extent = shape[static_cast<size_t>(a.axis)];
    a = dilated ? Reversed(a, extent) : ReversedByWindow(a, extent);
  }
  const Value dx = TermsOf(axes) > kMostTerms
                       ? AddedIntoPlanes(shape, indices, dy)
                       : SumWhereIndexed(dy, convert(indices, DType::kI32), axes, shape);
  return {Narrowed(dx, in[0].type().dtype())};
}

Cost MaxPoolGradient::cost(TypeSpan in) const {
  Dim window = 1;
  for (int64_t k : kernel) window = window * k;
  return {.flops = in[1].elements() * window, .terms = window};
}

Cases MaxPoolGradient::cases() {
  return {
      {MaxPoolGradient{.kernel = {3}, .strides = {2}}, {"float[2,3,9]", "float[2,3,4]"}},
      {MaxPoolGradient{.kernel = {2, 2}, .strides = {2, 2}}, {"float[1,2,6,4]", "float[1,2,3,2]"}},
      {MaxPoolGradient{.kernel = {3, 3}, .strides = {2, 1}, .padding = {1, 1, 1, 1}},
       {"f32[2,70,7,6] in 0..2", "f32[2,70,4,6]"}},
      {MaxPoolGradient{.kernel = {3, 2},
                       .strides = {2, 2},
                       .dilations = {2, 1},
                       .padding = {2, 0, 1, 1},
                       .ceil_mode = true},
       {"f64[1,2,8,7]", "f64[1,2,4,4]"}},
      {MaxPoolGradient{.kernel = {2, 1, 3}, .padding = {1, 0, 0, 0, 0, 2}},
       {"f64[1,1,3,2,5]", "f64[1,1,3,2,5]"}},
      {MaxPoolGradient{.kernel = {20}, .padding = {8, 9}}, {"f32[1,3,40]", "f32[1,3,38]"}},
      {MaxPoolGradient{.kernel = {3, 3}}, {"f32[1,2,4,4] edges", "f32[1,2,2,2]"}},
      {MaxPoolGradient{.kernel = {2}}, {"f32[0,2,3]", "f32[0,2,2]"}},
      {MaxPoolGradient{}, {"f32[1,2,3]", "f32[1,2,3]"}},
      {.op = MaxPoolGradient{.kernel = {3, 3}, .strides = {2, 2}, .padding = {1, 1, 1, 1}},
       .in = {"f32[4,64,112,112]", "f32[4,64,56,56]"},
       .bench = true},
      {.op = MaxPoolGradient{.kernel = {2, 2}, .strides = {2, 2}},
       .in = {"f32[64,32,28,28]", "f32[64,32,14,14]"},
       .bench = true},
      {MaxPoolGradient{.kernel = {2}}, {"f32[1,2,3]", "f32[1,2,3]"}, "dy is f32[1, 2, 3]"},
      {MaxPoolGradient{.kernel = {4}}, {"f32[1,2,3]", "f32[1,2,1]"}, "does not fit"}};
}

FORGE_DEFINE_OP(MaxPoolGradient)

}  // namespace forge::ir
