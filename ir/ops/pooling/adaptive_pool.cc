// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/pooling/adaptive_pool.h"

#include <algorithm>

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/pooling/max_pool.h"
#include "ir/ops/pooling/window_taps.h"

namespace forge::ir {
namespace {

absl::StatusOr<Dims> AdaptiveShape(const Type& x, std::span<const int64_t> sizes) {
  Dims shape = x.shape();
  if (sizes.size() + 2 != shape.size() || sizes.empty() || sizes.size() > kMostSpatialAxes)
    return InvalidArgument("{} sizes for {} spatial axes", sizes.size(), x.rank() - 2);
  for (size_t a = 0; a < sizes.size(); ++a) {
    if (sizes[a] < 0 || sizes[a] > INT32_MAX) return InvalidArgument("a size of {}", sizes[a]);
    Dim& extent = shape[2 + a];
    if (extent.max() < 1) return InvalidArgument("axis {} has no element", 2 + a);
    if (sizes[a] > 0) extent = sizes[a];
  }
  return shape;
}

// errors: Unimplemented where the length of windows is not known
absl::StatusOr<std::vector<TapAxis>> AdaptiveAxes(const Type& x, std::span<const int64_t> sizes) {
  FORGE_ASSIGN_OR_RETURN(const Dims places, AdaptiveShape(x, sizes));
  std::vector<TapAxis> out;
  for (size_t a = 0; a < sizes.size(); ++a) {
    const Dim& extent = x.shape()[2 + a];
    if (sizes[a] == 0 || extent == Dim(sizes[a])) continue;
    if (!extent.is_constant())
      return Unimplemented("windows over {} elements have no known length", extent.ToText());
    const int64_t n = extent.constant(), size = sizes[a];
    const int64_t longest = n % size == 0 ? n / size : (n + size - 2) / size + 1;
    out.push_back({.axis = static_cast<int64_t>(a) + 2,
                   .places = places[2 + a],
                   .taps = std::min(longest, n),
                   .step = n,
                   .spread = size,
                   .divisor = size,
                   .end = Dim(n + size - 1)});
  }
  return out;
}

// A pooling over as many windows as elements still names each element.
std::vector<TapAxis> AllAxes(const Type& x, std::vector<TapAxis> axes) {
  for (int64_t a = 2; a < x.rank(); ++a) {
    const bool known =
        std::any_of(axes.begin(), axes.end(), [&](const TapAxis& t) { return t.axis == a; });
    if (!known) axes.push_back({.axis = a, .places = x.shape()[static_cast<size_t>(a)]});
  }
  std::sort(axes.begin(), axes.end(),
            [](const TapAxis& a, const TapAxis& b) { return a.axis < b.axis; });
  return axes;
}

std::vector<int64_t> SpatialAxes(const Type& x) {
  std::vector<int64_t> axes;
  for (int64_t a = 2; a < x.rank(); ++a) axes.push_back(a);
  return axes;
}

}  // namespace

absl::StatusOr<Types> AdaptiveAvgPool::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(Dims shape, AdaptiveShape(in[0], sizes));
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

absl::StatusOr<Types> AdaptiveMaxPool::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const Dims shape, AdaptiveShape(in[0], sizes));
  return Types{Type::Tensor(in[0].dtype(), shape), Type::Tensor(DType::kI64, shape)};
}

Values AdaptiveAvgPool::decompose(Function& f, ValueSpan in) const {
  const auto axes = AdaptiveAxes(in[0].type(), sizes);
  if (!axes.ok()) return f.Fail(axes.status()), Values{in[0]};
  if (axes->empty()) return {in[0]};
  if (std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 1; }))
    return {f(Reduce{.kind = ReduceKind::kMean, .axes = SpatialAxes(in[0].type())}, {in[0]})};
  const Value x = Widened(in[0]);
  const Value y = SumOfTaps(x, *axes) / CountOfTaps(x, *axes, x.type().dtype());
  return {Narrowed(y, in[0].type().dtype())};
}

Values AdaptiveMaxPool::decompose(Function& f, ValueSpan in) const {
  const auto axes = AdaptiveAxes(in[0].type(), sizes);
  if (!axes.ok()) return f.Fail(axes.status()), Values{in[0], in[0]};
  const LargestTaps y = LargestOfTaps(in[0], AllAxes(in[0].type(), *axes));
  return {y.value, y.index};
}

Values AdaptiveMaxPool::gradient(const GradArgs& g) const {
  if (!g.dout[0]) return {Value{}};
  return {AddedIntoPlanes(g.in[0].type().shape(), g.out[1], g.dout[0])};
}

namespace {

template <class T>
[[gnu::cold]] Cases AdaptiveCases() {
  return {{T{{3}}, {"float[2,3,7]"}},
          {T{{2, 3}}, {"float[1,2,4,9]"}},
          {T{{5, 2}}, {"f32[1,2,3,11]"}},
          {T{{0, 1}}, {"f64[2,1,3,4]"}},
          {T{{2, 1, 3}}, {"f64[1,1,3,4,5]"}},
          {T{{1}}, {"f32[1,1,1]"}},
          {T{{4}}, {"f32[0,2,9]"}},
          {T{{2, 2}}, {"f32[1,2,9]"}, "2 sizes for 1 spatial axes"},
          {T{{-2}}, {"f32[1,2,9]"}, "a size of -2"},
          {T{{2}}, {"f32[1,2,0]"}, "axis 2 has no element"}};
}

}  // namespace

Cases AdaptiveAvgPool::cases() { return AdaptiveCases<AdaptiveAvgPool>(); }

Cases AdaptiveMaxPool::cases() {
  Cases cases = AdaptiveCases<AdaptiveMaxPool>();
  cases.push_back({AdaptiveMaxPool{{5}}, {"float[1,1,14] edges"}});
  return cases;
}

FORGE_DEFINE_OP(AdaptiveAvgPool)
FORGE_DEFINE_OP(AdaptiveMaxPool)

}  // namespace forge::ir
