// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct SoftmaxStatistics {
  int64_t axis = -1;

  static constexpr OpInfo kInfo{
      .name = "softmax_statistics",
      .formula =
          "along axis: top = max(x) and log_sum = log(sum(exp(x - top))), so that the softmax is "
          "exp(x - top - log_sum); both are -infinity where all x are, or there is none",
      .inputs = "x: float[*d]",
      .outputs = "top: wide(x)[*s]; log_sum: wide(x)[*s]",
      .source = "the running maximum and normaliser of online softmax, Milakov and Gimelshein"};
  static constexpr Field kFields[] = {FieldOf<&SoftmaxStatistics::axis>(
      "axis", "Kept with extent 1; negative counts from the end.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const SoftmaxStatistics*);

}  // namespace forge::ir
