// SPDX-License-Identifier: Apache-2.0
// Transforms along chosen axes, over the op dft.
#pragma once
#include "ir/ops/complex/parts.h"

namespace forge::ir {

// What divides the results: n on the inverse; n on the forward transform; sqrt(n) on both; nothing.
enum class FftNorm : uint8_t { kBackward, kForward, kOrtho, kNone };
inline constexpr std::string_view kFftNorms = "backward|forward|ortho|none";
inline constexpr std::string_view kFftNormHelp =
    "What divides by the number of elements: the inverse, the forward transform, both by its root, "
    "or neither.";
inline constexpr std::string_view kFftAxesHelp = "Negative ones count from the end.";
inline constexpr std::string_view kFftSizesHelp =
    "Of the axes, which are cut or filled with zeros at their ends; none means as they are.";

// What a transform of n elements is divided by.
double FftDivisor(FftNorm norm, bool inverse, double n);

struct FftOptions {
  std::vector<int64_t> axes;
  Dims sizes;  // empty, or one for each axis
  FftNorm norm;
  bool inverse;
};

class AxisTransform {
 public:
  // Fails `f` where the options do not fit together.
  AxisTransform(Function& f, FftOptions options);
  ComplexParts All(ComplexParts x);  // over all axes
  ComplexParts OfReal(Value x);      // the last axis first, of which the first half stays
  Value ToReal(ComplexParts x);      // the last axis last, from its first half

 private:
  bool Fits(Value x);
  // The number of elements of axis `i` of the list, of `standing` where that is not changed.
  Dim SizeOf(size_t i, const Dim& standing);
  Dim SizeOf(size_t i, Value x);
  Value Resized(Value x, int64_t axis, const Dim& size);
  Value Scaled(Value x, const Dim& size);
  ComplexParts Along(ComplexParts x, size_t i, const Dim& size);

  Function& f_;
  FftOptions options_;
};

}  // namespace forge::ir
