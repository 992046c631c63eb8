// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/reduction/softmax_statistics.h"

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"

namespace forge::ir {

absl::StatusOr<Types> SoftmaxStatistics::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, in[0].rank()));
  Dims shape = in[0].shape();
  shape[static_cast<size_t>(along)] = 1;
  return Types(2, Type::Tensor(WideOf(in[0].dtype()), shape));
}

Values SoftmaxStatistics::decompose(Function&, ValueSpan in) const {
  const Value x = Widened(in[0]);
  const Value top = ReduceAxes(ReduceKind::kMax, x, {axis});
  return {top, log(ReduceAxes(ReduceKind::kSum, exp(x - max(top, LeastFinite(x.type()))), {axis}))};
}

Cases SoftmaxStatistics::cases() {
  using Op = SoftmaxStatistics;
  return {{Op{}, {"float[2,3,8]"}},
          {Op{.axis = 1}, {"float[2,33,5] in -30..30"}},
          {Op{.axis = 0}, {"f32[40,12]"}},
          {Op{}, {"f32[3,1000] in -80..80"}},
          {Op{}, {"f32[2,70004] in -80..80"}},
          {Op{}, {"f32[3,7] in 1000..1001"}},
          {Op{}, {"f32[2,19] edges"}},
          {Op{.axis = 0}, {"f32[1,19] edges"}},
          {Op{}, {"f32[3,5] in -inf..-inf"}},
          {Op{}, {"f32[3,0]"}},
          {Op{}, {"f32[0,4]"}},
          {.op = Op{}, .in = {"f32[4096,4096]"}, .bench = true},
          {Op{.axis = 2}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
          {Op{}, {"i32[2,3]"}, "float"}};
}

FORGE_DEFINE_OP(SoftmaxStatistics)

}  // namespace forge::ir
