// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/complex/parts.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/reduction/vector_norm.h"

namespace forge::ir {

// The square of the modulus.
inline Value SquareOf(Value x) {
  if (!Has(kComplexTypes, x.type().dtype())) return x * x;
  const ComplexParts z = PartsOf(x);
  const Value re = z.re * z.re;
  return re + z.im * z.im;
}

// The sum of squared differences from the mean, divided by n - correction, of floats that sums
// accumulate in, or of complex numbers.
inline Value VarianceOf(Value x, const std::vector<int64_t>& axes, double correction,
                        bool keep_dims) {
  Function& f = *x.fn;
  const Value d = x - ReduceAxes(ReduceKind::kMean, x, axes);
  if (!f.status().ok()) return d;
  const Value squares =
      f(Reduce{.kind = ReduceKind::kSum, .axes = axes, .keep_dims = keep_dims}, {SquareOf(d)});
  std::vector<int64_t> over = axes;
  for (int64_t a = 0; axes.empty() && a < x.type().rank(); ++a) over.push_back(a);
  const auto all = NormalAxes(over, x.type().rank());  // checked by the sums
  Dim count = 1;
  for (const int64_t a : *all) count = count * x.type().shape()[static_cast<size_t>(a)];
  return squares / max(ScalarOf(f, count, RealOf(x.type().dtype())) - correction, 0.0);
}

struct Variance {
  std::vector<int64_t> axes = {};
  double correction = 1;
  bool keep_dims = true;

  static constexpr OpInfo kInfo{
      .name = "variance",
      .formula = "y = sum(|x - mean(x)|^2) / max(0, n - correction) over axes of n elements",
      .inputs = "x: float|complex[*d]",
      .outputs = "y: real(x)[*r]",
      .source = "torch.var"};
  static constexpr Field kFields[] = {
      FieldOf<&Variance::axes>("axes", "Negative ones count from the end; none means all."),
      FieldOf<&Variance::correction>("correction", "0 for that of the elements themselves."),
      FieldOf<&Variance::keep_dims>("keep_dims", "Keeps reduced axes with extent 1.")};

  Values decompose(Function&, ValueSpan in) const {
    const Value y = VarianceOf(Widened(in[0]), axes, correction, keep_dims);
    return {Narrowed(y, RealOf(in[0].type().dtype()))};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Variance{{-1}}, {"float[3,7]"}},
            {Variance{{0, 2}, 0, false}, {"float[5,3,4] in 90..110"}},
            {Variance{{}, 1.5}, {"float[2,3,2]"}},
            {Variance{{1}}, {"complex[3,7]"}},
            {Variance{{1}}, {"f32[3,1]"}},
            {Variance{{0}}, {"f32[19] edges"}},
            {Variance{{1}, 1, false}, {"float[3,0]"}},
            {Variance{{0}}, {"f32[3,0]"}},
            {.op = Variance{{-1}}, .in = {"f32[1024,4096]"}, .bench = true},
            {Variance{{2}}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
            {Variance{}, {"i32[2,3]"}, "float"}};
  }
};
const OpDef& DefOf(const Variance*);

struct StandardDeviation {
  std::vector<int64_t> axes = {};
  double correction = 1;
  bool keep_dims = true;

  static constexpr OpInfo kInfo{.name = "standard_deviation",
                                .formula = "y = sqrt(variance(x)), with gradient 0 at 0",
                                .inputs = "x: float|complex[*d]",
                                .outputs = "y: real(x)[*r]",
                                .source = "torch.std"};
  static constexpr Field kFields[] = {
      FieldOf<&StandardDeviation::axes>("axes", "As of `variance`."),
      FieldOf<&StandardDeviation::correction>("correction", "As of `variance`."),
      FieldOf<&StandardDeviation::keep_dims>("keep_dims", "Keeps reduced axes with extent 1.")};

  Values decompose(Function&, ValueSpan in) const {
    const Value y = RootOf(VarianceOf(Widened(in[0]), axes, correction, keep_dims));
    return {Narrowed(y, RealOf(in[0].type().dtype()))};
  }
  [[gnu::cold]] static Cases cases() {
    return {{StandardDeviation{{-1}}, {"float[3,7]"}},
            {StandardDeviation{{0, 2}, 0, false}, {"float[5,3,4]"}},
            {StandardDeviation{}, {"float[2,3,2]"}},
            {StandardDeviation{{0}, 0, false}, {"complex[7,3]"}},
            {StandardDeviation{{1}}, {"f32[3,1]"}},
            {StandardDeviation{{1}, 0}, {"f32[3,4] in 2..2"}},
            {StandardDeviation{{1}}, {"f32[3,0]"}},
            {StandardDeviation{{0, 0}}, {"f32[2,3]"}, "given twice"},
            {StandardDeviation{{-3}}, {"f32[2,3]"}, "axis -3 is outside rank 2"}};
  }
};
const OpDef& DefOf(const StandardDeviation*);

}  // namespace forge::ir
