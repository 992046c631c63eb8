// SPDX-License-Identifier: Apache-2.0
// The rows along one axis of a tensor without gaps, for scans, index reductions and sorts.
#pragma once
#include <cmath>

#include "cpu_runtime/kernels/kernel.h"

namespace forge::cpu {

// Memory as [outer, along, inner].
struct RowsAlong {
  int64_t outer = 0, along = 0, inner = 1;
  int64_t elements() const { return outer * along * inner; }
};
// The rows of an operand along an axis; of all elements where `axis` is absent.
//   errors: Unimplemented (permuted axes), those of NormalAxis
absl::StatusOr<RowsAlong> RowsAlongOf(const View& x, std::optional<int64_t> axis);
// Whether the layout is row-major.
bool IsRowMajor(const View& v);

// NaN, which integers have not.
template <class T>
bool IsNan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

// As WithNumberType; a bool is a byte of 0 or 1.
template <class F>
auto WithOrderedType(DType t, F f) {
  return t == DType::kBool ? f(uint8_t{}) : WithNumberType(t, f);
}

}  // namespace forge::cpu
