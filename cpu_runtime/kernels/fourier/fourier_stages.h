// SPDX-License-Identifier: Apache-2.0
// The stages of Fourier transforms, on real and imaginary parts that lie apart.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace forge::cpu {

// The largest radix of a stage; longer prime factors have none.
inline constexpr int64_t kLargestRadix = 31;

template <class T>
struct FourierParts {
  T *re = nullptr, *im = nullptr;  // of an operand one may be null: zeros
  int64_t row = 1;                 // elements from a row of numbers to the next
};

// y[q + step (radix p + k), c] = turn(p, k) sum over j of x[q + step (p + count j), c]
// exp(-2 pi i j k / radix), for rows q < step, p < count and columns c. The last stage has a count
// of 1. source: Stockham, "High-speed convolution and correlation", 1966
template <class T>
struct FourierStage {
  int64_t radix = 1, count = 1, step = 1;
  // cos and sin of 2 pi i / radix, for radices that have no formula of their own.
  std::vector<T> roots;
  // The real and imaginary parts of turn(p, k): [p, k - 1, 2]
  std::vector<T> turns;
  // The same as [k - 1, 2, p, q] for stages with few neighbours; else empty.
  std::vector<T> spread;
};

// The stages of a transform of `n` elements, whose prime factors are at most kLargestRadix.
template <class T>
std::vector<FourierStage<T>> FourierStagesOf(int64_t n);  // float and double

// Runs a stage for `columns` neighbouring numbers to a row. With one column rows lie without gaps.
template <class T>
void RunFourierStage(const FourierStage<T>& stage, const FourierParts<const T>& x,
                     const FourierParts<T>& y, int64_t columns);  // float and double

// Between complex numbers and their parts; the second multiplies by `scale`.
template <class T>
void SplitComplex(const T* x, T* re, T* im, int64_t n);  // float and double
template <class T>
void JoinComplex(const T* re, const T* im, T scale, T* y, int64_t n);  // float and double

// The first half + 1 elements, times `scale`, of the transform of a real signal of 2 half elements,
// from the transform z of its elements of even place plus i times those of odd place.
template <class T>
struct RealSignal {
  int64_t half = 0;
  std::vector<T> turns_re, turns_im;  // exp(-pi i k / half) for k < half
  explicit RealSignal(int64_t half_length);
  void Store(const T* re, const T* im, T scale, T* y) const;  // float and double
};

}  // namespace forge::cpu
