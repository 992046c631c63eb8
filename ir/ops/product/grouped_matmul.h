// SPDX-License-Identifier: Apache-2.0
// The product of a mixture of experts.
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/product/matmul.h"

namespace forge::ir {

struct GroupedMatMul {
  static constexpr OpInfo kInfo{
      .name = "grouped_matmul",
      .formula = "y[i] = x[i] weight[expert[i]]; 0 where there is no such expert",
      .inputs = "x: float[m, k]; weight: =x[e, k, n]; expert: i32|i64[m]",
      .outputs = "y: =x[m, n]",
      .source = "N. Shazeer and others, \"Outrageously Large Neural Networks\", 2017",
      .product = true};

  // The gather is part of the product's loads: no copy of the weights is made.
  Values decompose(Function& f, ValueSpan in) const {
    const Dims x = in[0].type().shape(), weight = in[1].type().shape();
    const Value row = f(Reshape{{x[0], 1, x[1]}}, {in[0]});
    const Value y = f(MatMul{}, {row, f(Gather{}, {in[1], in[2]})});
    return {f(Reshape{{x[0], weight[2]}}, {y})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{GroupedMatMul{}, {"float[5,4]", "float[3,4,6]", "i64[5] in 0..2"}},
            {GroupedMatMul{}, {"f32[7,9]", "f32[2,9,1]", "i32[7] in -2..3"}},
            {GroupedMatMul{}, {"f32[0,4]", "f32[3,4,6]", "i64[0]"}},
            {GroupedMatMul{}, {"f32[2,0]", "f32[3,0,6]", "i64[2] in 0..2"}},
            {.op = GroupedMatMul{},
             .in = {"f32[64,512]", "f32[8,512,512]", "i64[64] in 0..7"},
             .bench = true},
            {GroupedMatMul{}, {"f32[5,4]", "f32[3,5,6]", "i64[5]"}, "weight"},
            {GroupedMatMul{}, {"f32[5,4]", "f32[3,4,6]", "i64[4]"}, "expert"}};
  }
};
const OpDef& DefOf(const GroupedMatMul*);

}  // namespace forge::ir
