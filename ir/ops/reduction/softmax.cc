// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/reduction/softmax.h"

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {
absl::StatusOr<Types> Softmax::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(NormalAxis(axis, in[0].rank()).status());
  if (log && masked_rows_zero)
    return InvalidArgument("log and masked_rows_zero exclude each other");
  return Types{Type::Tensor(in[0].dtype(), in[0].shape())};
}

Values Softmax::decompose(Function&, ValueSpan in) const {
  const Value x = Widened(in[0]);
  Value top = ReduceAxes(ReduceKind::kMax, x, {axis});
  if (masked_rows_zero) top = max(top, LeastFinite(x.type()));
  // Of a logarithm spelt otherwise than below, so that it is computed again and not stored.
  const Value e = exp(log ? x + -top : x - top);
  Value sum = ReduceAxes(ReduceKind::kSum, e, {axis});
  if (log) return {Narrowed(x - top - forge::ir::log(sum), in[0].type().dtype())};
  if (masked_rows_zero) sum = select(sum > 0.0, sum, select(sum < 0.5, 1.0, sum));
  return {Narrowed(e / sum, in[0].type().dtype())};
}

Values Softmax::gradient(const GradArgs& g) const {
  const Value y = g.out[0], dy = g.dout[0];
  if (log) return {dy - exp(y) * ReduceAxes(ReduceKind::kSum, dy, {axis})};
  return {y * (dy - ReduceAxes(ReduceKind::kSum, y * dy, {axis}))};
}

Cases Softmax::cases() {
  return {{Softmax{}, {"float[2,3,4]"}},
          {Softmax{.axis = 1}, {"float[2,33,5] in -30..30"}},
          {Softmax{.axis = 0}, {"float[1,7]"}},
          {Softmax{}, {"f32[3,1000] in -80..80"}},
          {Softmax{}, {"f32[5,2]"}},
          {Softmax{}, {"f32[2,70004] in -80..80"}},
          {Softmax{.axis = 0}, {"f16[20001,3]"}},
          {Softmax{}, {"f32[1]"}},
          {Softmax{.axis = 2}, {"f32[2,3,130,2]"}},
          {Softmax{}, {"float[4,0]"}},
          {Softmax{}, {"float[0,4]"}},
          {Softmax{}, {"f32[37] edges"}},
          {Softmax{.masked_rows_zero = true}, {"float[3,40] edges"}},
          {Softmax{.axis = 0, .masked_rows_zero = true}, {"f32[5,12]"}},
          {Softmax{.masked_rows_zero = true}, {"float[19,1] edges"}},
          {Softmax{.masked_rows_zero = true}, {"f32[3,40] in -inf..-inf"}},
          {Softmax{.log = true}, {"float[2,3,4]"}},
          {Softmax{.axis = 1, .log = true}, {"float[2,33,5] in -30..30"}},
          {Softmax{.log = true}, {"f32[3,1000] in -80..80"}},
          {Softmax{.log = true}, {"f32[2,70004] in -80..80"}},
          {Softmax{.log = true}, {"f32[2,19] edges"}},
          {Softmax{.log = true}, {"f32[3,5] in -inf..-inf"}},
          {Softmax{.axis = 0, .log = true}, {"float[3,0]"}},
          {.op = Softmax{}, .in = {"f32[4096,4096]"}, .bench = true},
          {.op = Softmax{.log = true}, .in = {"f32[4096,4096]"}, .bench = true},
          {.op = Softmax{.axis = 1}, .in = {"f32[8,21,128,128]"}, .bench = true},
          {Softmax{.axis = 3}, {"f32[2,3]"}, "axis 3 is outside rank 2"},
          {Softmax{}, {"i32[2,3]"}, "float"},
          {Softmax{.masked_rows_zero = true, .log = true}, {"f32[2,3]"}, "exclude each other"}};
}

FORGE_DEFINE_OP(Softmax)

}  // namespace forge::ir
