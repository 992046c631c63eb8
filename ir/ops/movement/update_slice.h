// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct UpdateSlice {
  Dims begin = {};

  static constexpr Alias kInPlace[] = {{.output = 0, .input = 0, .written = 1}};
  static constexpr OpInfo kInfo{
      .name = "update_slice",
      .formula = "y is x, but y[begin + i] = update[i]",
      .inputs = "x: any[*d]; update: =x[*u]",
      .outputs = "y: =x",
      .source = "StableHLO dynamic_update_slice, without its clamping; torch.slice_scatter",
      .in_place = kInPlace};
  static constexpr Field kFields[] = {FieldOf<&UpdateSlice::begin>(
      "begin", "Where the update lies in x: one index for each axis, of which none is clamped.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  // The parts of x around the update, joined with it.
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const UpdateSlice*);

}  // namespace forge::ir
