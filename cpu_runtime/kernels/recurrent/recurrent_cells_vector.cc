// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/recurrent/recurrent_cells.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/kernels/recurrent/recurrent_cells_vector.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "cpu_runtime/lanes-inl.h"
#include "hwy/highway.h"
#include "ir/ops/elementwise/row_parts.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {

// Rows compiled for this instruction set: code of forge::ir could not be inlined here.
namespace rows {
using namespace forge::ir;  // NOLINT: what rows expect
#include "ir/ops/elementwise/families/hyperbolic_rows.inc"
}  // namespace rows

namespace recurrent {

#include "cpu_runtime/kernels/recurrent/recurrent_cells.inc"

using Whole = hn::CappedTag<float, kColumnGroup>;
using Single = hn::CappedTag<float, 1>;

template <class D>
struct Place {
  size_t i;
  HWY_INLINE Lanes<D> operator()(const float* p) const { return Lanes<D>(hn::LoadU(D(), p + i)); }
  HWY_INLINE void Put(float* p, Lanes<D> v) const { hn::StoreU(v.v, D(), p + i); }
};

// Calls units(place) for whole vectors, then for what is left unit by unit.
template <class F>
HWY_INLINE void EachUnit(size_t n, F units) {
  const size_t lanes = hn::Lanes(Whole());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) units(Place<Whole>{i});
  for (; i < n; ++i) units(Place<Single>{i});
}

// One loop for each formula.
#define FORGE_LOOP(Step, name)                               \
  void name(const Step<float>& s) {                          \
    EachUnit(s.units, [&](auto at) { name##Units(s, at); }); \
  }
FORGE_LOOP(CellStep, Lstm)
FORGE_LOOP(CellStep, Gru)
FORGE_LOOP(CellStep, RnnTanh)
FORGE_LOOP(CellStep, RnnRelu)
FORGE_LOOP(CellStep, GruReset)
FORGE_LOOP(CellGradient, LstmGradient)
FORGE_LOOP(CellGradient, GruGradient)
FORGE_LOOP(CellGradient, TanhGradient)
FORGE_LOOP(CellGradient, ReluGradient)
FORGE_LOOP(CellGradient, LstmCell)
#undef FORGE_LOOP

// kRows rows and kVectors vectors of columns from j on: their sums stay in registers.
template <int kRows, int kVectors>
HWY_INLINE void Block(const RowProducts<float>& p, size_t row, size_t j) {
  const Whole d;
  const size_t lanes = hn::Lanes(d);
  const float* x = p.x + row * p.x_stride;
  float* y = p.y + row * p.y_stride + j;
  const float* w[kVectors];
  hn::Vec<Whole> sums[kRows][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const size_t column = j + v * lanes;
    w[v] = p.w + column / kColumnGroup * kColumnGroup * p.depth + column % kColumnGroup;
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sums[i][v] = hn::LoadU(d, p.bias + column);
  }
  for (size_t k = 0; k < p.depth; ++k) {
    hn::Vec<Whole> weights[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weights[v] = hn::LoadU(d, w[v] + k * kColumnGroup);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const auto factor = hn::Set(d, x[i * p.x_stride + k]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(factor, weights[v], sums[i][v]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[i][v], d, y + i * p.y_stride + v * lanes);
}

// All rows of the columns from j on, whose weights stay in the cache between them.
template <int kVectors>
HWY_INLINE void Rows(const RowProducts<float>& p, size_t j) {
  size_t row = 0;
  for (; row + 4 <= p.rows; row += 4) Block<4, kVectors>(p, row, j);
  for (; row < p.rows; ++row) Block<1, kVectors>(p, row, j);
}

void Products(const RowProducts<float>& p) {
  const size_t lanes = hn::Lanes(Whole()), columns = p.groups * kColumnGroup;
  // Of 32 registers, or of 16.
  constexpr size_t kVectors = hn::MaxLanes(Whole()) >= 16 ? 4 : 3;
  size_t j = 0;
  for (; j + kVectors * lanes <= columns; j += kVectors * lanes) Rows<kVectors>(p, j);
  for (; j + 2 * lanes <= columns; j += 2 * lanes) Rows<2>(p, j);
  for (; j < columns; j += lanes) Rows<1>(p, j);
}

}  // namespace recurrent

void MultiplyFloats(const RowProducts<float>& p) { recurrent::Products(p); }

const CellLoops<float>& Cells() {
  static constexpr CellLoops<float> kLoops{&recurrent::Lstm,         &recurrent::Gru,
                                           &recurrent::RnnTanh,      &recurrent::RnnRelu,
                                           &recurrent::GruReset,     &recurrent::LstmGradient,
                                           &recurrent::GruGradient,  &recurrent::TanhGradient,
                                           &recurrent::ReluGradient, &recurrent::LstmCell};
  return kLoops;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forge::cpu {
HWY_EXPORT(MultiplyFloats);
HWY_EXPORT(Cells);
template <>
void MultiplyRows(const RowProducts<float>& p) {
  HWY_DYNAMIC_DISPATCH(MultiplyFloats)(p);
}
template <>
const CellLoops<float>& CellLoopsOf() {
  return HWY_DYNAMIC_DISPATCH(Cells)();
}
}  // namespace forge::cpu
#endif
