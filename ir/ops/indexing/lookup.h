// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/gather.h"

namespace forge::ir {

struct Lookup {
  static constexpr int64_t kCodes = 256;  // of 8 bits
  static constexpr OpInfo kInfo{.name = "lookup",
                                .formula = "y = table[x]; negative x count from its end",
                                .inputs = "x: i8|u8[*d]; table: number|bool[n]",
                                .outputs = "y: =table[*d]",
                                .source = "ONNX Runtime's tables of quantised activations"};

  Values decompose(Function& f, ValueSpan in) const {
    const Dim elements = in[1].type().elements();
    if (!Unify(elements, Dim(kCodes)).ok())
      return f.Fail(InvalidArgument("a table of {} elements", elements.ToText())), Values{in[1]};
    return {f(Gather{.axis = 0}, {in[1], f(Cast{DType::kI32}, {in[0]})})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Lookup{}, {"u8[5,31]", "number[256]"}},
            {Lookup{}, {"i8[3,1,7]", "u8[256]"}},
            {Lookup{}, {"i8[]", "bool[256]"}},
            {Lookup{}, {"u8[0,3]", "f32[256]"}},
            {.op = Lookup{}, .in = {"u8[4194304]", "u8[256]"}, .bench = true},
            {Lookup{}, {"u8[4]", "f32[255]"}, "a table of 255 elements"},
            {Lookup{}, {"i32[4]", "f32[256]"}, "i32"}};
  }
};
const OpDef& DefOf(const Lookup*);

}  // namespace forge::ir
