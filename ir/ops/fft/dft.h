// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// The longest transform: the square of a position, in twice this, is an i64.
inline constexpr int64_t kLongestDft = int64_t{1} << 24;

struct Dft {
  int64_t axis = -1;
  bool inverse = false;

  static constexpr OpInfo kInfo{
      .name = "dft",
      .formula =
          "y[k] = sum over j of x[j] exp(-2 pi i j k / n) along axis, with +2 where inverse; "
          "neither is scaled",
      .inputs = "re: f32|f64[*d]; im: =re[*d]?",
      .outputs = "y_re: =re; y_im: =re",
      .source = "numpy.fft.fft"};
  static constexpr Field kFields[] = {
      FieldOf<&Dft::axis>("axis", "Negative counts from the end."),
      FieldOf<&Dft::inverse>("inverse", "The sign of the exponent.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  // Products of matrices of at most 32 rows for each factor of n; where n has none so small, a
  // convolution of a length that has (Bluestein), by transforms. n must be a number.
  Values decompose(Function& f, ValueSpan in) const;
  Cost cost(TypeSpan in) const;  // as of radix 2
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Dft*);

}  // namespace forge::ir
