// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/conv_gradient.h"

#include <algorithm>

#include "ir/ops/decomposing.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/spatial/conv_transpose.h"
#include "ir/ops/spatial/window.h"

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

Value ConvDataGradient(const Conv& op, const Dims& x, Value weight, Value dy) {
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

// Taps and windows change roles: x[k, groups * n, ..] and dy[m, n, ..] give [k, m, r..].
Value ConvWeightGradient(const Conv& op, Value x, const Dims& weight, Value dy) {
  Function& f = *dy.fn;
  const Dims shape = x.type().shape();
  const Dim channels = FloorDiv(shape[1], op.groups);  // of a group
  Dims split{shape[0], op.groups, channels}, joined{channels, op.groups * shape[0]};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  joined.insert(joined.end(), shape.begin() + 2, shape.end());
  std::vector<int64_t> order{2, 1, 0}, swap{1, 0};
  for (size_t a = 2; a < shape.size(); ++a) {
    order.push_back(static_cast<int64_t>(a) + 1);
    swap.push_back(static_cast<int64_t>(a));
  }
  const Value windows =
      f(Reshape{joined}, {f(Transpose{std::move(order)}, {f(Reshape{split}, {x})})});
  const Conv by{
      .strides = op.dilations, .dilations = op.strides, .padding = op.padding, .groups = op.groups};
  const Value taps = f(by, {windows, f(Transpose{swap}, {dy})});
  if (!f.status().ok()) return taps;
  const Value out = f(Transpose{swap}, {taps});
  return FirstElements(out, weight);
}

Value ConvBiasGradient(Value dy) {
  std::vector<int64_t> axes{0};
  for (int64_t a = 2; a < dy.type().rank(); ++a) axes.push_back(a);
  const Value sum = ReduceAxes(ReduceKind::kSum, dy, std::move(axes));
  return (*dy.fn)(Reshape{{dy.type().shape()[1]}}, {sum});
}

}  // namespace forge::ir
