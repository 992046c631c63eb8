// SPDX-License-Identifier: Apache-2.0
// What reductions, pooling and softmax do to runs of neighbouring elements.
#pragma once
#include <cstddef>
#include <limits>

#include "ir/ops/reduction/reduce.h"

namespace forge::cpu {

// Tables are indexed by ir::ReduceKind; a mean is a sum here. Max and min propagate NaN.
template <class T>
struct RowLoops {
  // into[i] = combine(into[i], x[i])
  void (*combine[5])(T* into, const T* x, size_t n);
  // combine(start, x[0], x[1] ...), in an order that n alone decides
  T (*fold[5])(const T* x, size_t n, T start);
};
// For softmax, whose x is at most the shift. Each is within a few units of the last place, and what
// would be denormal may be 0.
template <class T>
struct ExpLoops {
  // out[i] = exp(x[i] - shift), the sum of which is returned
  T (*exp_sum)(const T* x, T shift, T* out, size_t n);
  // out[i] = exp(x[i] - shift[i]); sum[i] += out[i]
  void (*exp_add)(const T* x, const T* shift, T* out, T* sum, size_t n);
  void (*divide)(T* x, const T* by, size_t n);
  void (*divide_all)(T* x, T by, size_t n);
};

// For layer norm: out[i] = (x[i] - mean) / sqrt(variance + epsilon) * gamma[i] + beta[i]. The mean
// is 0 where it is not to be subtracted.
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
void NormaliseRow(const NormRow<T>& row);  // float and double

// T: float, by instruction set; double and the integers, plain.
template <class T>
const RowLoops<T>& RowLoopsOf();
template <class T>
const ExpLoops<T>& ExpLoopsOf();  // float and double

// Where a reduction begins.
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
