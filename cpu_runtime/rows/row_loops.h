// SPDX-License-Identifier: Apache-2.0
// Loops over contiguous elements for reductions, pooling, softmax, layer norm and attention.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ir/ops/reduction/reduce.h"

namespace forge::cpu {

// Loops of reductions. Tables are indexed by ir::ReduceKind; a mean is computed as a sum. Max and
// min propagate NaN.
template <class T>
struct RowLoops {
  // into[i] = combine(into[i], x[i])
  void (*combine[5])(T* into, const T* x, size_t n);
  // combine(start, x[0], x[1] ...), in an order that depends on n alone
  T (*fold[5])(const T* x, size_t n, T start);
};
// Loops of softmax, where x is at most the shift. The error is a few units in the last place;
// denormal results may be 0.
template <class T>
struct ExpLoops {
  // out[i] = exp(x[i] - shift); returns the sum of out
  T (*exp_sum)(const T* x, T shift, T* out, size_t n);
  // out[i] = exp(x[i] - shift[i]); sum[i] += out[i]
  void (*exp_add)(const T* x, const T* shift, T* out, T* sum, size_t n);
  void (*divide)(T* x, const T* by, size_t n);
  void (*divide_all)(T* x, T by, size_t n);
};

// One row, x, and a matrix whose rows are `stride` elements apart.
struct RowAndMatrix {
  const float *x, *m;
  int64_t stride;
  size_t rows, n;  // of the matrix; its elements in a row
  float* out;
};
struct RowProducts {
  // out[i] = scale * sum over j of x[j] * m[i][j]
  void (*dots)(RowAndMatrix, float scale);
  // out[j] += sum over i of x[i] * m[i][j]
  void (*add_rows)(RowAndMatrix);
};
const RowProducts& RowProductLoops();

// One row of a layer norm: out[i] = (x[i] - mean) / sqrt(variance + epsilon) * gamma[i] + beta[i].
// The mean is taken as 0 when subtract_mean is false.
template <class T>
struct NormRow {
  const T* x;
  const T *gamma, *beta;  // null: 1 and 0
  T* out;
  size_t n;
  T epsilon;
  bool subtract_mean;
};
template <class T>
struct RowStatistics {
  T mean, inverse_deviation;
};
template <class T>
RowStatistics<T> NormaliseRow(const NormRow<T>& row);  // float and double

// One row of the gradient of a layer norm: with s = inverse_deviation, z = (x - mean) * s and dz =
// dy * gamma, out[i] = s * (dz[i] - mean of dz - z[i] * mean of dz * z), without the mean of dz
// unless x is centred. Adds dy[i] * z[i] to dgamma[i], and dy[i] to dbeta[i].
template <class T>
struct NormGradientRow {
  const T *dy, *x;
  const T* gamma;  // null: 1
  T* out;
  T *dgamma, *dbeta;  // null: not wanted
  size_t n;
  RowStatistics<T> of_x;
  bool centred;
};
template <class T>
void NormGradient(const NormGradientRow<T>& row);  // float and double

// The loops for an element type: vector code for float, plain loops for double and integers.
template <class T>
const RowLoops<T>& RowLoopsOf();
template <class T>
const ExpLoops<T>& ExpLoopsOf();  // float and double

// The initial value of a reduction.
template <class T>
constexpr T StartOf(ir::ReduceKind kind) {
  using Limits = std::numeric_limits<T>;
  switch (kind) {
    case ir::ReduceKind::kMax:
      return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
    case ir::ReduceKind::kMin:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case ir::ReduceKind::kProd:
      return T{1};
    case ir::ReduceKind::kSum:
    case ir::ReduceKind::kMean:
      break;
  }
  return T{0};
}

}  // namespace forge::cpu
