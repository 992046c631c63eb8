// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"

namespace forge::ir {

// sqrt(x) of x that are not negative, with gradient 0 at 0.
inline Value RootOf(Value x) {
  const Value positive = x > 0.0;
  return select(positive, sqrt(select(positive, x, 1.0)), x);
}

struct VectorNorm {
  double p = 2;
  std::vector<int64_t> axes = {};
  bool keep_dims = true;

  static constexpr OpInfo kInfo{
      .name = "vector_norm",
      .formula =
          "y = sum(|x|^p)^(1/p) over axes; the largest or least |x| for p infinite, how "
          "many are not 0 for p = 0",
      .inputs = "x: float[*d]",
      .outputs = "y: =x[*r]",
      .source = "ONNX ReduceL1-18, ReduceL2-18, LpNormalization-22; torch.linalg.vector_norm"};
  static constexpr Field kFields[] = {
      FieldOf<&VectorNorm::p>("p", "Any number but NaN; no root is scaled against overflow."),
      FieldOf<&VectorNorm::axes>("axes", "Negative ones count from the end; none means all."),
      FieldOf<&VectorNorm::keep_dims>("keep_dims", "Keeps reduced axes with extent 1.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (std::isnan(p)) f.Fail(InvalidArgument("vector_norm: p is NaN"));
    const Value x = Widened(in[0]);
    const auto over = [&](ReduceKind kind, Value v) {
      return f(Reduce{.kind = kind, .axes = axes, .keep_dims = keep_dims}, {v});
    };
    Value y;
    if (std::isinf(p)) {
      y = over(p > 0 ? ReduceKind::kMax : ReduceKind::kMin, abs(x));
    } else if (p == 0) {
      y = over(ReduceKind::kSum, convert(convert(x, DType::kBool), x.type().dtype()));
    } else if (p == 1) {
      y = over(ReduceKind::kSum, abs(x));
    } else if (p == 2) {
      y = RootOf(over(ReduceKind::kSum, x * x));
    } else {
      const auto number = [&](double v) { return f(Fill{v, x.type().dtype()}, {}); };
      y = pow(over(ReduceKind::kSum, pow(abs(x), number(p))), number(1 / p));
    }
    return {f.status().ok() ? Narrowed(y, in[0].type().dtype()) : y};
  }
  [[gnu::cold]] static Cases cases() {
    const double infinity = std::numeric_limits<double>::infinity();
    return {{VectorNorm{2, {-1}}, {"float[3,7]"}},
            {VectorNorm{1, {0, 2}, false}, {"float[5,3,4]"}},
            {VectorNorm{3, {1}}, {"float[2,6] in 0.5..3"}},
            {VectorNorm{0.5, {}, false}, {"float[2,6] in 0.5..3"}},
            {VectorNorm{infinity, {0}}, {"float[5,3]"}},
            {VectorNorm{-infinity, {0}}, {"float[5,3]"}},
            {VectorNorm{0, {0}}, {"f32[38,1] edges"}},
            {VectorNorm{}, {"float[]"}},
            {VectorNorm{2, {1}}, {"f32[2,5] in 0..0"}},
            {VectorNorm{2, {0}}, {"f32[19,1] edges"}},
            {VectorNorm{2, {1}}, {"float[3,0]"}},
            {VectorNorm{std::nan(""), {1}}, {"f32[3,2]"}, "p is NaN"},
            {VectorNorm{2, {2}}, {"f32[2,3]"}, "axis 2 is outside rank 2"}};
  }
};
const OpDef& DefOf(const VectorNorm*);

}  // namespace forge::ir
