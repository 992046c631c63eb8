// SPDX-License-Identifier: Apache-2.0
// Weighted sums of elements at computed places.
#pragma once
#include <cstddef>
#include <cstdint>

namespace forge::cpu {

// y[i] = sum over k of weights[k, i] x[places[k, i]]; a negative place has the element 0.
template <class T>
struct GatheredSum {
  size_t terms = 0, n = 0;
  const int32_t* places = nullptr;  // [terms, n], rows `stride` elements apart
  const T* weights = nullptr;       // as `places`
  size_t stride = 0;
  const T* x = nullptr;
  T* y = nullptr;
};
template <class T>
void SumGathered(const GatheredSum<T>& s);  // float and double

}  // namespace forge::cpu
