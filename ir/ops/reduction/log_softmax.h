// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/reduction/softmax.h"

namespace forge::ir {

struct LogSoftmax {
  int64_t axis = -1;

  static constexpr OpInfo kInfo{.name = "log_softmax",
                                .formula = "y = x - max(x) - log(sum(exp(x - max(x)))) along axis",
                                .inputs = "x: float[*d]",
                                .outputs = "y: =x",
                                .source = "ONNX LogSoftmax-13; torch.log_softmax"};
  static constexpr Field kFields[] = {
      FieldOf<&LogSoftmax::axis>("axis", "Negative counts from the end.")};

  Values decompose(Function& f, ValueSpan in) const {
    return {f(Softmax{.axis = axis, .log = true}, {in[0]})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{LogSoftmax{}, {"float[2,3,4]"}},
            {LogSoftmax{.axis = 1}, {"float[2,33,5] in -30..30"}},
            {LogSoftmax{.axis = 0}, {"float[1,7]"}},
            {LogSoftmax{}, {"f32[3,1000] in -80..80"}},
            {LogSoftmax{}, {"f32[2,19] edges"}},
            {LogSoftmax{}, {"f32[3,5] in -inf..-inf"}},
            {LogSoftmax{}, {"float[4,0]"}},
            {LogSoftmax{.axis = 0}, {"float[3,0]"}},
            {LogSoftmax{}, {"f32[]"}, "axis -1 is outside rank 0"},
            {LogSoftmax{.axis = 3}, {"f32[2,3]"}, "axis 3 is outside rank 2"}};
  }
};
const OpDef& DefOf(const LogSoftmax*);

}  // namespace forge::ir
