// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/broadcast_to.h"

namespace forge::ir {

struct AffineGrid {
  Dims sizes = {};
  bool align_corners = false;

  static constexpr OpInfo kInfo{
      .name = "affine_grid",
      .formula = "y[n,p..] = theta[n] times the place of p and 1, in the form of `grid_sample`",
      .inputs = "theta: float[n, k, j]",
      .outputs = "y: =theta[n, *p]",
      .source = "ONNX AffineGrid-20; torch.nn.functional.affine_grid"};
  static constexpr Field kFields[] = {
      FieldOf<&AffineGrid::sizes>("sizes", "Extents of the two or three axes p."),
      FieldOf<&AffineGrid::align_corners>("align_corners", "As of `grid_sample`.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims& shape = in[0].type().shape();
    const size_t axes = sizes.size();
    const auto k = static_cast<int64_t>(axes), rank = k + 2;
    if (axes < 2 || axes > 3 || !Unify(shape[1], Dim(k)).ok() || !Unify(shape[2], Dim(k + 1)).ok())
      return f.Fail(InvalidArgument("theta {} for {} axes", ToText(shape), axes)), Values{in[0]};
    const Value theta = Widened(in[0]);
    Dims each(axes + 1, Dim(1));
    each[0] = shape[0];
    each.emplace_back(k);
    const auto column = [&](int64_t j) {
      return f(Reshape{each}, {f(Slice{.begin = {j}, .end = {j + 1}, .axes = {2}}, {theta})});
    };
    Value y = column(k);
    for (int64_t a = 0; a < k; ++a) {  // the last axis comes first
      const Dim& size = sizes[static_cast<size_t>(k - 1 - a)];
      const Value i = Along(f, theta.type().dtype(), size, k - a, rank), n = DimValue(size, i);
      const Value edge =
          align_corners ? 2 * i / max(n - 1, 1.0) - min(n - 1, 1.0) : (2 * i + 1) / n - 1;
      y = column(a) * edge + y;
    }
    Dims out{shape[0]};
    out.insert(out.end(), sizes.begin(), sizes.end());
    out.emplace_back(k);
    return {Narrowed(f(BroadcastTo{out}, {y}), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{AffineGrid{{3, 4}}, {"float[2,2,3]"}},
            {AffineGrid{{3, 4}, true}, {"float[2,2,3]"}},
            {AffineGrid{{2, 1, 3}}, {"f64[1,3,4]"}},
            {AffineGrid{{2, 1, 3}, true}, {"f64[1,3,4]"}},
            {AffineGrid{{0, 4}}, {"f32[2,2,3]"}},
            {AffineGrid{{3, 4}}, {"f32[0,2,3]"}},
            {AffineGrid{{3}}, {"f32[1,1,2]"}, "for 1 axes"},
            {AffineGrid{{3, 4}}, {"f32[1,3,4]"}, "theta [1, 3, 4] for 2 axes"}};
  }
};
const OpDef& DefOf(const AffineGrid*);

}  // namespace forge::ir
