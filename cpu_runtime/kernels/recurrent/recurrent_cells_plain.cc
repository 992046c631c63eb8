// SPDX-License-Identifier: Apache-2.0
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

template <void (*kUnits)(const CellStep<double>&, PlaceOfDouble)>
void EachUnit(const CellStep<double>& s) {
  for (size_t i = 0; i < s.units; ++i) kUnits(s, PlaceOfDouble{i});
}

}  // namespace

template <>
void AddRowProducts(const RowProducts<double>& p) {
  for (size_t i = 0; i < p.rows; ++i)
    for (size_t k = 0; k < p.depth; ++k) {
      const double x = p.x[i * p.depth + k];
      const double* w = p.w + k * p.w_stride;
      double* y = p.y + i * p.y_stride;
      for (size_t j = 0; j < p.columns; ++j) y[j] += x * w[j];
    }
}

template <>
const CellLoops<double>& CellLoopsOf() {
  static constexpr CellLoops<double> kLoops{&EachUnit<LstmUnits>, &EachUnit<GruUnits>,
                                            &EachUnit<RnnTanhUnits>, &EachUnit<RnnReluUnits>,
                                            &EachUnit<GruResetUnits>};
  return kLoops;
}

}  // namespace forge::cpu
