// SPDX-License-Identifier: Apache-2.0
// Sums over windows, for means by another divisor and for norms.
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/pooling/window_taps.h"
#include "ir/ops/spatial/pool.h"

namespace forge::ir {

// Returns the sum over each window of a mean pooling, from the mean and the numbers of elements.
inline Value SumOfWindows(Function& f, const Pool& mean, Value x) {
  const Value y = f(mean, {x});
  if (!f.status().ok()) return y;
  const size_t rank = x.type().shape().size();
  const std::vector<int64_t> size = ForEachAxis(mean.kernel, rank - 2, 1);
  const auto axes = TapAxes(WindowOver(mean, rank), size, y.type().shape());
  return y * CountOfTaps(x, axes, y.type().dtype());
}

struct SumPool {
  std::vector<int64_t> kernel, strides, padding;  // empty: see window.h
  bool ceil_mode = false;
  double divisor = 1;

  static constexpr OpInfo kInfo{
      .name = "sum_pool",
      .formula = "y[n,c,p...] = sum over the window of x[n,c] at p * stride - padding, / divisor",
      .inputs = "x: float[n, c, *d]",
      .outputs = "y: =x[n, c, *p]",
      .source = "torch.nn.functional.avg_pool2d and 3d with divisor_override"};
  static constexpr Field kFields[] = {FieldOf<&SumPool::kernel>("kernel", "As of `pool`."),
                                      FieldOf<&SumPool::strides>("strides", "As of `pool`."),
                                      FieldOf<&SumPool::padding>("padding", "As of `pool`."),
                                      FieldOf<&SumPool::ceil_mode>("ceil_mode", "As of `pool`."),
                                      FieldOf<&SumPool::divisor>("divisor", "Not 0.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (divisor == 0) return f.Fail(InvalidArgument("a divisor of 0")), Values{in[0]};
    const Pool mean{.kind = PoolKind::kAverage,
                    .kernel = kernel,
                    .strides = strides,
                    .padding = padding,
                    .ceil_mode = ceil_mode};
    const Value sum = SumOfWindows(f, mean, Widened(in[0]));
    return {Narrowed(sum / divisor, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{SumPool{.kernel = {2, 3}, .divisor = 4}, {"float[1,2,4,5]"}},
            {SumPool{.kernel = {3, 3},
                     .strides = {2, 2},
                     .padding = {1, 1, 1, 1},
                     .ceil_mode = true,
                     .divisor = -3},
             {"f64[1,2,6,7]"}},
            {SumPool{.kernel = {2, 1, 2}, .divisor = 3}, {"f32[1,1,3,2,4]"}},
            {SumPool{.kernel = {3}}, {"f32[1,1,5]"}},
            {SumPool{}, {"f32[0,2,3]"}},
            {SumPool{.divisor = 0}, {"f32[1,2,3]"}, "a divisor of 0"},
            {SumPool{.kernel = {4}}, {"f32[1,2,3]"}, "does not fit"}};
  }
};
const OpDef& DefOf(const SumPool*);

struct LpPool {
  double p = 2;
  std::vector<int64_t> kernel, strides;  // empty: see window.h
  bool ceil_mode = false;

  static constexpr OpInfo kInfo{
      .name = "lp_pool",
      .formula =
          "y[n,c,q...] = (k * mean of x^p over the window)^(1/p), with k the elements of a "
          "whole window",
      .inputs = "x: float[n, c, *d]",
      .outputs = "y: =x[n, c, *q]",
      .source = "torch.nn.functional.lp_pool1d to 3d"};
  static constexpr Field kFields[] = {FieldOf<&LpPool::p>("p", "Not 0."),
                                      FieldOf<&LpPool::kernel>("kernel", "As of `pool`."),
                                      FieldOf<&LpPool::strides>("strides", "As of `pool`."),
                                      FieldOf<&LpPool::ceil_mode>("ceil_mode", "As of `pool`.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (p == 0) return f.Fail(InvalidArgument("p is 0")), Values{in[0]};
    const Value x = Widened(in[0]);
    const auto number = [&](double v) { return f(Fill{v, x.type().dtype(), {}}, {}); };
    const Value power = p == 2 ? x * x : pow(x, number(p));
    double k = 1;
    for (int64_t n : kernel) k *= static_cast<double>(n);
    const Pool mean{
        .kind = PoolKind::kAverage, .kernel = kernel, .strides = strides, .ceil_mode = ceil_mode};
    const Value sum = f(mean, {power}) * k;
    const Value y = p == 2 ? sqrt(sum) : pow(sum, number(1 / p));
    return {Narrowed(y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{LpPool{.kernel = {3}, .strides = {2}}, {"float[2,3,9]"}},
            {LpPool{.p = 3, .kernel = {2, 2}}, {"f64[1,2,4,5] in 0.5..4"}},
            {LpPool{.p = 1, .kernel = {2, 1, 2}}, {"f32[1,1,3,2,4] in 0..4"}},
            {LpPool{.kernel = {2, 3}, .strides = {2, 2}, .ceil_mode = true}, {"f32[1,2,5,6]"}},
            {LpPool{}, {"f32[0,2,3]"}},
            {LpPool{.p = 0}, {"f32[1,2,3]"}, "p is 0"},
            {LpPool{.kernel = {4}}, {"f32[1,2,3]"}, "does not fit"}};
  }
};
const OpDef& DefOf(const LpPool*);

}  // namespace forge::ir
