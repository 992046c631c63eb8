// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/sorting/top_k.h"

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/sorting/sort.h"

namespace forge::ir {

absl::StatusOr<Types> TopK::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, in[0].rank()));
  Dims shape = in[0].shape();
  Dim& extent = shape[static_cast<size_t>(along)];
  if (k < 0 || k > extent.max())
    return InvalidArgument("k is {}, axis {} has {} elements", k, along, extent.ToText());
  extent = k;
  return Types{in[0].With(shape), Type::Tensor(DType::kI64, shape)};
}

Values TopK::decompose(Function& f, ValueSpan in) const {
  Values sorted = f.Add(Sort{.axis = axis, .descending = largest}, in);
  for (Value& v : sorted) v = f(Slice{.begin = {0}, .end = {Dim(k)}, .axes = {axis}}, {v});
  return sorted;
}

Cost TopK::cost(TypeSpan in) const { return {.flops = in[0].elements() * 2, .terms = 0}; }

Cases TopK::cases() {
  return {{TopK{3}, {"ordered[3,7] in -2..2"}},
          {TopK{2, 1, false}, {"ordered[2,9,5] in -4..4"}},
          {TopK{5, 0}, {"ordered[33,2] in 0..9"}},
          {TopK{12}, {"ordered[2,37] edges"}},
          {TopK{30, -1, false}, {"ordered[40] edges"}},
          {TopK{50, -1, false}, {"float[2,300]"}},
          {TopK{7}, {"f16[2,3000] in -50..50"}},
          {TopK{9, -1, false}, {"u64[2,2500] in 0..50"}},
          {TopK{20, 0}, {"f32[9000,2] in -3..3"}},
          {TopK{600}, {"f32[2,5000]"}},
          {TopK{30}, {"f32[40000] in -3..3"}},
          {TopK{1}, {"f32[5,1]"}},
          {TopK{0}, {"f32[3,4]"}},
          {TopK{4}, {"f32[3,4]"}},
          {TopK{2, 1}, {"f32[0,4,2]"}},
          {TopK{1, -2}, {"f32[2,1,3]"}},
          {.op = TopK{50}, .in = {"f32[1000,1000]"}, .bench = true},
          {.op = TopK{50}, .in = {"f32[1048576]"}, .bench = true},
          {TopK{.axis = 2}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
          {TopK{4}, {"f32[2,3]"}, "k is 4, axis 1 has 3 elements"},
          {TopK{-1}, {"f32[2,3]"}, "k is -1"},
          {TopK{}, {"c64[2,3]"}, "x"}};
}

FORGE_DEFINE_OP(TopK)

}  // namespace forge::ir
