// SPDX-License-Identifier: Apache-2.0
// Poolings whose windows follow from the number of results.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct AdaptiveAvgPool {
  std::vector<int64_t> sizes = {};

  static constexpr OpInfo kInfo{
      .name = "adaptive_avg_pool",
      .formula =
          "y[n,c,p...] = mean of x[n,c] from floor(p * d / size) to ceil((p + 1) * d / "
          "size) - 1 along each axis of d elements",
      .inputs = "x: float[n, c, *d]",
      .outputs = "y: =x[n, c, *p]",
      .source = "torch.nn.functional.adaptive_avg_pool1d to 3d"};
  static constexpr Field kFields[] = {FieldOf<&AdaptiveAvgPool::sizes>(
      "sizes", "Results along each spatial axis; 0: as many as elements.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const AdaptiveAvgPool*);

struct AdaptiveMaxPool {
  std::vector<int64_t> sizes = {};

  static constexpr OpInfo kInfo{
      .name = "adaptive_max_pool",
      .formula = "y and indices as of `max_pool`, over the windows of `adaptive_avg_pool`",
      .inputs = "x: float[n, c, *d]",
      .outputs = "y: =x[n, c, *p]; indices: i64[n, c, *p]",
      .source = "torch.nn.functional.adaptive_max_pool1d to 3d with return_indices"};
  static constexpr Field kFields[] = {
      FieldOf<&AdaptiveMaxPool::sizes>("sizes", "As of `adaptive_avg_pool`.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const AdaptiveMaxPool*);

}  // namespace forge::ir
