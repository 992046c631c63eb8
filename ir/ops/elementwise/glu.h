// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"

namespace forge::ir {

struct Glu {
  int64_t axis = -1;
  static constexpr OpInfo kInfo{.name = "glu",
                                .formula = "y = a / (1 + exp(-b)); a and b are the halves of x",
                                .inputs = "x: float[*d]",
                                .outputs = "y: =x[*r]",
                                .source = "torch.nn.functional.glu"};
  static constexpr Field kFields[] = {
      FieldOf<&Glu::axis>("axis", "The one that is halved; negative counts from the end.")};

  Values decompose(Function& f, ValueSpan in) const {
    const auto along = NormalAxis(axis, in[0].type().rank());
    if (!along.ok()) return f.Fail(along.status()), Values{in[0]};
    const Dim extent = in[0].type().shape()[static_cast<size_t>(*along)];
    if (extent.is_constant() && extent.constant() % 2 != 0)
      f.Fail(InvalidArgument("axis {} of {} elements has no halves", axis, extent.ToText()));
    const Dim half = FloorDiv(extent, 2);
    const Value a = Widened(f(Slice{.begin = {0}, .end = {half}, .axes = {*along}}, {in[0]}));
    const Value b = Widened(f(Slice{.begin = {half}, .end = {extent}, .axes = {*along}}, {in[0]}));
    return {Narrowed(a / (1 + exp(-b)), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Glu{}, {"float[3,8]"}},
            {Glu{.axis = 1}, {"float[2,6,5] in -30..30"}},
            {Glu{.axis = 0}, {"float[38] edges"}},
            {Glu{}, {"f32[4,0]"}},
            {Glu{}, {"f32[2,3]"}, "axis -1 of 3 elements has no halves"},
            {Glu{.axis = 2}, {"f32[2,4]"}, "axis 2 is outside rank 2"}};
  }
};
const OpDef& DefOf(const Glu*);

}  // namespace forge::ir
