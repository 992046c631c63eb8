// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/strided_gather.h"

#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/index_arithmetic.h"

namespace forge::ir {

absl::StatusOr<Types> StridedGather::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, in[0].rank()));
  Dims shape = in[0].shape();
  Dim& extent = shape[static_cast<size_t>(along)];
  if (divisor.max() < 1) return InvalidArgument("a divisor of {}", divisor.ToText());
  if (size.max() < 0) return InvalidArgument("a size of {}", size.ToText());
  if (extent.max() < 1 && size.min() > 0) return InvalidArgument("no element to sample");
  extent = size;
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

IndexMap StridedGather::map(TypeSpan in, const Dims& at) const {
  const auto along = NormalAxis(axis, in[0].rank());
  FORGE_CHECK(along.ok());
  const size_t a = static_cast<size_t>(*along);
  Dims index = at;
  const Dim place = FloorDiv(at[a] * step + shift, divisor);
  index[a] = Max(0, Min(place, in[0].shape()[a] - 1));
  return {.pieces = {{.operand = 0, .index = std::move(index)}}};
}

Values StridedGather::gradient(const GradArgs& g) const {
  const Dims& x = g.in[0].type().shape();
  const auto along = NormalAxis(axis, g.in[0].type().rank());
  FORGE_CHECK(along.ok());
  const Value place = g.fn(Iota{.begin = shift, .step = step, .count = size}, {});
  const Value index = div_floor(place, DimValue(divisor, place));
  return {AddedInto(x, Clamped(index, x[static_cast<size_t>(*along)]), g.dout[0], *along)};
}

Cases StridedGather::cases() {
  return {
      {StridedGather{.axis = 1, .size = 6, .divisor = 2}, {"any[2,3]"}},
      {StridedGather{.axis = -1, .size = 7, .step = 6, .shift = -2, .divisor = 7}, {"any[2,3,3]"}},
      {StridedGather{.size = 3, .step = -2, .shift = 5}, {"f32[9,2]"}},
      {StridedGather{.axis = 2, .size = 33, .step = 10, .shift = -13, .divisor = 66},
       {"f32[1,3,5,4]"}},
      {StridedGather{.size = 0}, {"f32[0,3]"}},
      {StridedGather{.size = 4}, {"f32[1]"}},
      {StridedGather{.size = 0}, {"f32[3,2]"}},
      {.op = StridedGather{.axis = 3, .size = 320, .divisor = 2},
       .in = {"f32[1,24,160,160]"},
       .bench = true},
      {StridedGather{.axis = 2, .size = 3}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
      {StridedGather{.size = 3, .divisor = 0}, {"f32[2,3]"}, "divisor of 0"},
      {StridedGather{.size = -1}, {"f32[2,3]"}, "size of -1"},
      {StridedGather{.size = 2}, {"f32[0,3]"}, "no element"}};
}

FORGE_DEFINE_OP(StridedGather)

}  // namespace forge::ir
