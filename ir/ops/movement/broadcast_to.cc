// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/broadcast_to.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {

absl::StatusOr<Types> BroadcastTo::infer(TypeSpan in) const {
  const Dims& from = in[0].shape();
  if (from.size() > shape.size())
    return InvalidArgument("{} has fewer axes than {}", ToText(shape), ToText(from));
  for (size_t i = 0; i < from.size(); ++i) {
    const Dim& to = shape[shape.size() - from.size() + i];
    if (from[i] != 1 && !Unify(from[i], to).ok())
      return InvalidArgument("{} does not broadcast to {}", ToText(from), ToText(shape));
  }
  for (const Dim& d : shape)
    if (d.max() < 0) return InvalidArgument("shape {} has a negative dimension", ToText(shape));
  return Types{Type::Tensor(in[0].dtype(), shape)};
}

IndexMap BroadcastTo::map(TypeSpan in, const Dims& at) const {
  const Dims& from = in[0].shape();
  const size_t extra = shape.size() - from.size();
  Dims index;
  for (size_t i = 0; i < from.size(); ++i) {
    // An extent that is not yet known is 1 or that of the result: the last index serves both.
    const bool whole = from[i] == shape[extra + i];
    index.push_back(whole ? at[extra + i] : Min(at[extra + i], from[i] - 1));
  }
  return {.pieces = {{.operand = 0, .index = std::move(index)}}};
}

Values BroadcastTo::gradient(const GradArgs& g) const {
  return {SumTo(g.dout[0], g.in[0].type().shape())};
}

Cases BroadcastTo::cases() {
  return {{BroadcastTo{{2, 3}}, {"any[3]"}},
          {BroadcastTo{{4, 3, 5}}, {"any[3,1]"}},
          {BroadcastTo{{2, 2}}, {"any[]"}},
          {BroadcastTo{{2, 0, 3}}, {"any[1,3]"}},
          {BroadcastTo{{3}}, {"any[3]"}},
          {.op = BroadcastTo{{64, 1000, 64}}, .in = {"f32[64,1,64]"}, .bench = true},
          {BroadcastTo{{2, 4}}, {"f32[3]"}, "does not broadcast"},
          {BroadcastTo{{3}}, {"f32[2,3]"}, "fewer axes"},
          {BroadcastTo{{1}}, {"f32[3]"}, "does not broadcast"}};
}

FORGE_DEFINE_OP(BroadcastTo)

}  // namespace forge::ir
