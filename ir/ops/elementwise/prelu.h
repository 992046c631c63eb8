// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/norm/affine.h"

namespace forge::ir {

struct PRelu {
  static constexpr OpInfo kInfo{.name = "prelu",
                                .formula = "y = x above 0, else slope * x",
                                .inputs = "x: real[*d]; slope: =x[*s]",
                                .outputs = "y: =x",
                                .source = "ONNX PRelu-16; torch.nn.functional.prelu"};

  // The slope broadcasts to x: PyTorch's, of one element for each channel, as [c, 1..].
  Values decompose(Function&, ValueSpan in) const {
    CheckBroadcasts(in[1], in[0].type().shape());
    const Value x = Widened(in[0]), y = select(x > 0.0, x, x * Widened(in[1]));
    return {Narrowed(y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{PRelu{}, {"float[2,3,4]", "float[3,1]"}},
            {PRelu{}, {"float[5,7]", "float[5,7]"}},
            {PRelu{}, {"float[19] edges", "float[1]"}},
            {PRelu{}, {"int[3,14] edges", "int[14]"}},
            {PRelu{}, {"f32[]", "f32[]"}},
            {PRelu{}, {"f32[0,3]", "f32[3]"}},
            {.op = PRelu{}, .in = {"f32[8,64,56,56]", "f32[64,1,1]"}, .bench = true},
            {PRelu{}, {"f32[2,1]", "f32[3]"}, "f32[3] does not broadcast to [2, 1]"},
            {PRelu{}, {"f32[2,3]", "f32[4]"}, "f32[4] does not broadcast to [2, 3]"}};
  }
};
const OpDef& DefOf(const PRelu*);

}  // namespace forge::ir
