// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "cpu_runtime/rows/row_loops.h"
#include "cpu_runtime/tape/plain_scalar.h"
#include "ir/ops/elementwise/row_parts.h"

namespace forge::ir::rows {
#include "ir/ops/elementwise/families/exponential_rows.inc"
}  // namespace forge::ir::rows

namespace forge::cpu {
namespace {

template <class T, ir::ReduceKind kKind>
T Both(T a, T b) {
  const Plain<T> x(a), y(b);
  if constexpr (kKind == ir::ReduceKind::kMax)
    return max(x, y).v;
  else if constexpr (kKind == ir::ReduceKind::kMin)
    return min(x, y).v;
  else if constexpr (kKind == ir::ReduceKind::kProd)
    return (x * y).v;
  else
    return (x + y).v;
}

template <class T, ir::ReduceKind kKind>
void Combine(T* into, const T* x, size_t n) {
  for (size_t i = 0; i < n; ++i) into[i] = Both<T, kKind>(into[i], x[i]);
}
template <class T, ir::ReduceKind kKind>
T Fold(const T* x, size_t n, T start) {
  for (size_t i = 0; i < n; ++i) start = Both<T, kKind>(start, x[i]);
  return start;
}

double Exp(double x) { return ir::rows::exp(Plain<double>(x)).v; }

double ExpSum(const double* x, double shift, double* out, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += out[i] = Exp(x[i] - shift);
  return sum;
}
void ExpAdd(const double* x, const double* shift, double* out, double* sum, size_t n) {
  for (size_t i = 0; i < n; ++i) sum[i] += out[i] = Exp(x[i] - shift[i]);
}
void Divide(double* x, const double* by, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] /= by[i];
}
void DivideAll(double* x, double by, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] /= by;
}

}  // namespace

template <class T>
const RowLoops<T>& RowLoopsOf() {
  using K = ir::ReduceKind;
  static constexpr RowLoops<T> kLoops{
      {&Combine<T, K::kSum>, &Combine<T, K::kMean>, &Combine<T, K::kMax>, &Combine<T, K::kMin>,
       &Combine<T, K::kProd>},
      {&Fold<T, K::kSum>, &Fold<T, K::kMean>, &Fold<T, K::kMax>, &Fold<T, K::kMin>,
       &Fold<T, K::kProd>}};
  return kLoops;
}
template const RowLoops<double>& RowLoopsOf<double>();
template const RowLoops<uint8_t>& RowLoopsOf<uint8_t>();
template const RowLoops<uint16_t>& RowLoopsOf<uint16_t>();
template const RowLoops<uint32_t>& RowLoopsOf<uint32_t>();
template const RowLoops<uint64_t>& RowLoopsOf<uint64_t>();
template const RowLoops<int8_t>& RowLoopsOf<int8_t>();
template const RowLoops<int16_t>& RowLoopsOf<int16_t>();
template const RowLoops<int32_t>& RowLoopsOf<int32_t>();
template const RowLoops<int64_t>& RowLoopsOf<int64_t>();

template <>
const ExpLoops<double>& ExpLoopsOf<double>() {
  static constexpr ExpLoops<double> kLoops{&ExpSum, &ExpAdd, &Divide, &DivideAll};
  return kLoops;
}

template <>
RowStatistics<double> NormaliseRow<double>(const NormRow<double>& row) {
  const auto n = static_cast<double>(row.n);
  double mean = 0, variance = 0;
  for (size_t i = 0; i < row.n && row.subtract_mean; ++i) mean += row.x[i] / n;
  for (size_t i = 0; i < row.n; ++i) variance += (row.x[i] - mean) * (row.x[i] - mean) / n;
  const double deviation = std::sqrt(variance + row.epsilon);
  for (size_t i = 0; i < row.n; ++i)
    row.out[i] = (row.x[i] - mean) / deviation * (row.gamma ? row.gamma[i] : 1) +
                 (row.beta ? row.beta[i] : 0);
  return {mean, 1 / deviation};
}

template <>
void NormGradient<double>(const NormGradientRow<double>& row) {
  const auto [mean, scale] = row.of_x;
  const auto dz = [&](size_t i) { return row.gamma ? row.dy[i] * row.gamma[i] : row.dy[i]; };
  const auto z = [&](size_t i) { return (row.x[i] - mean) * scale; };
  double sum = 0, along = 0;
  for (size_t i = 0; i < row.n; ++i) {
    if (row.centred) sum += dz(i);
    along += dz(i) * z(i);
  }
  const auto n = static_cast<double>(row.n);
  for (size_t i = 0; i < row.n; ++i) {
    row.out[i] = scale * (dz(i) - sum / n - z(i) * along / n);
    if (row.dgamma == nullptr) continue;
    row.dgamma[i] += row.dy[i] * z(i);
    row.dbeta[i] += row.dy[i];
  }
}

}  // namespace forge::cpu
