// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cpu_runtime/kernels/recurrent/recurrent_cells.h"
#include "cpu_runtime/tape/plain_scalar.h"
#include "ir/ops/elementwise/row_parts.h"

namespace forge::ir::recurrent_rows {
#include "ir/ops/elementwise/families/hyperbolic_rows.inc"
}  // namespace forge::ir::recurrent_rows

namespace forge::cpu {
namespace {

namespace rows = ir::recurrent_rows;
#include "cpu_runtime/kernels/recurrent/recurrent_cells.inc"

struct PlaceOfDouble {
  size_t i;
  Plain<double> operator()(const double* p) const { return Plain<double>(p[i]); }
  void Put(double* p, Plain<double> v) const { p[i] = v.v; }
};

template <class Step, void (*kUnits)(const Step&, PlaceOfDouble)>
void EachUnit(const Step& s) {
  for (size_t i = 0; i < s.units; ++i) kUnits(s, PlaceOfDouble{i});
}
using Forward = CellStep<double>;
using Backward = CellGradient<double>;

}  // namespace

template <>
void MultiplyRows(const RowProducts<double>& p) {
  for (size_t i = 0; i < p.rows; ++i)
    for (size_t group = 0; group < p.groups; ++group) {
      const double* w = p.w + group * p.depth * kColumnGroup;
      double* y = p.y + i * p.y_stride + group * kColumnGroup;
      std::copy_n(p.bias + group * kColumnGroup, kColumnGroup, y);
      for (size_t k = 0; k < p.depth; ++k, w += kColumnGroup)
        for (size_t j = 0; j < kColumnGroup; ++j) y[j] += p.x[i * p.x_stride + k] * w[j];
    }
}

template <>
const CellLoops<double>& CellLoopsOf() {
  static constexpr CellLoops<double> kLoops{
      &EachUnit<Forward, LstmUnits>,          &EachUnit<Forward, GruUnits>,
      &EachUnit<Forward, RnnTanhUnits>,       &EachUnit<Forward, RnnReluUnits>,
      &EachUnit<Forward, GruResetUnits>,      &EachUnit<Backward, LstmGradientUnits>,
      &EachUnit<Backward, GruGradientUnits>,  &EachUnit<Backward, TanhGradientUnits>,
      &EachUnit<Backward, ReluGradientUnits>, &EachUnit<Backward, LstmCellUnits>};
  return kLoops;
}

}  // namespace forge::cpu
