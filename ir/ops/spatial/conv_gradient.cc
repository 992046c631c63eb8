// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/conv_gradient.h"

#include <algorithm>

#include "ir/ops/decomposing.h"
#include "ir/ops/spatial/conv_transpose.h"
#include "ir/ops/spatial/conv_weight_gradient.h"

namespace forge::ir {

Value FirstElements(Value v, const Dims& shape) {
  const Dims& have = v.type().shape();
  Slice crop;
  for (size_t a = 2; a < have.size(); ++a) {
    if (have[a] == shape[a]) continue;
    crop.axes.push_back(static_cast<int64_t>(a));
    crop.begin.emplace_back(0);
    crop.end.push_back(shape[a]);
  }
  return crop.axes.empty() ? v : (*v.fn)(crop, {v});
}

Value DataGradientOf(const Conv& op, const Dims& x, Value weight, Value dy) {
  Function& f = *dy.fn;
  ConvTranspose back{
      .strides = op.strides, .dilations = op.dilations, .padding = op.padding, .groups = op.groups};
  const Value least = f(back, {dy, weight});
  if (!f.status().ok()) return least;
  for (size_t a = 2; a < x.size(); ++a) {
    const Dim more = x[a] - least.type().shape()[a];
    if (!more.is_constant()) {
      f.Fail(Unimplemented("conv has no gradient of {} elements at a stride", x[a].ToText()));
      return least;
    }
    back.output_padding.push_back(more.constant());
  }
  if (std::ranges::all_of(back.output_padding, [](int64_t n) { return n == 0; })) return least;
  return f(back, {dy, weight});
}

Value WeightGradientOf(const Conv& op, Value x, const Dims& weight, Value dy) {
  return (*dy.fn)(ConvWeightGradient{.kernel = Dims(weight.begin() + 2, weight.end()),
                                     .strides = op.strides,
                                     .dilations = op.dilations,
                                     .padding = op.padding,
                                     .groups = op.groups},
                  {x, dy});
}

Value BiasGradientOf(Value dy) {
  std::vector<int64_t> axes{0};
  for (int64_t a = 2; a < dy.type().rank(); ++a) axes.push_back(a);
  const Value sum = ReduceAxes(ReduceKind::kSum, dy, std::move(axes));
  return (*dy.fn)(Reshape{{dy.type().shape()[1]}}, {sum});
}

}  // namespace forge::ir
