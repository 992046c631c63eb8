// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Dft {
  bool inverse = false;

  static constexpr OpInfo kInfo{
      .name = "dft",
      .formula =
          "y[..., k] = sum over j of x[..., j] exp(-2 pi i j k / n), with +2 where inverse; "
          "neither is scaled",
      .inputs = "re: f32|f64[*b, n]; im: =re[*b, n]?",
      .outputs = "y_re: =re[*b, n]; y_im: =re[*b, n]",
      .source = "numpy.fft.fft"};
  static constexpr Field kFields[] = {
      FieldOf<&Dft::inverse>("inverse", "The sign of the exponent.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  // Products of matrices of at most 32 rows for each factor of n; where n has none so small, a
  // convolution of a length that has (Bluestein). n must be a number.
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Dft*);

}  // namespace forge::ir
