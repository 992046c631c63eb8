// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"

namespace forge::ir {

struct MaskedFill {
  Number value = {};

  static constexpr OpInfo kInfo{.name = "masked_fill",
                                .formula = "y = mask ? value : x; both broadcast",
                                .inputs = "x: number|bool[*d]; mask: bool[*m]",
                                .outputs = "y: =x[*y]",
                                .source = "torch.masked_fill"};
  static constexpr Field kFields[] = {
      FieldOf<&MaskedFill::value>("value", "Converted as by `fill`.")};

  Values decompose(Function& f, ValueSpan in) const {
    return {select(in[1], f(Fill{value, in[0].type().dtype(), {}}, {}), in[0])};
  }
  [[gnu::cold]] static Cases cases() {
    return {{MaskedFill{3}, {"number[5,3]", "bool[5,3]"}},
            {MaskedFill{true}, {"bool[2,1,3]", "bool[4,1]"}},
            {MaskedFill{-std::numeric_limits<double>::infinity()}, {"f32[14] edges", "bool[1]"}},
            {MaskedFill{-0.5}, {"float[]", "bool[]"}},
            {MaskedFill{}, {"f32[0,3]", "bool[3]"}},
            {MaskedFill{}, {"f32[4]", "bool[3]"}, "broadcast"},
            {MaskedFill{}, {"f32[4]", "i32[4]"}, "mask"}};
  }
};
const OpDef& DefOf(const MaskedFill*);

}  // namespace forge::ir
