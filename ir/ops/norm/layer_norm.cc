// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/norm/layer_norm.h"

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {
absl::StatusOr<Types> LayerNorm::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const int64_t first, NormalAxis(axis, in[0].rank()));
  const Dims& x = in[0].shape();
  const Dims row(x.begin() + first, x.end());
  for (const Type& t : in.subspan(1)) {
    if (!t) continue;
    const std::array shapes = {&row, &t.shape()};
    const auto all = BroadcastShapes(shapes);
    if (!all.ok() || all->size() != row.size())
      return InvalidArgument("{} does not broadcast to {}", t.ToText(), ToText(row));
    for (size_t a = 0; a < row.size(); ++a)
      if (row[a] == Dim(1) && !((*all)[a] == Dim(1)))
        return InvalidArgument("{} does not broadcast to {}", t.ToText(), ToText(row));
  }
  return Types{Type::Tensor(in[0].dtype(), x)};
}

Values LayerNorm::decompose(Function& f, ValueSpan in) const {
  const Type type = in[0].type();
  const auto first = NormalAxis(axis, type.rank());
  if (!first.ok()) return f.Fail(first.status()), Values{in[0]};
  std::vector<int64_t> axes;
  for (int64_t a = *first; a < type.rank(); ++a) axes.push_back(a);
  const Value x = Widened(in[0]);
  const Value centred = subtract_mean ? x - ReduceAxes(ReduceKind::kMean, x, axes) : x;
  const Value variance = ReduceAxes(ReduceKind::kMean, centred * centred, axes);
  Value y = centred / sqrt(variance + epsilon);
  if (in[1]) y = y * Widened(in[1]);
  if (in[2]) y = y + Widened(in[2]);
  return {Narrowed(y, type.dtype())};
}

Cases LayerNorm::cases() {
  return {{LayerNorm{}, {"float[2,3,8]", "float[8]", "float[8]"}},
          {LayerNorm{.epsilon = 1e-12}, {"float[5,33]", "float[33]"}},
          {LayerNorm{.axis = 1}, {"f32[3,5,7]", "f32[5,7]", "f32[5,7]"}},
          {LayerNorm{.axis = 0, .epsilon = 0.5}, {"f32[4,3]", "f32[1,3]", "f32[1]"}},
          {LayerNorm{}, {"f32[3,130] in 90..110"}},
          {LayerNorm{}, {"f32[4,1]", "f32[1]", "f32[1]"}},
          {LayerNorm{}, {"f32[0,4]", "f32[4]", "f32[4]"}},
          {LayerNorm{}, {"f32[3,0]", "f32[0]", "f32[0]"}},
          {LayerNorm{}, {"f32[7,1000]", "", "f32[1000]"}},
          {LayerNorm{.epsilon = 1e-6, .subtract_mean = false}, {"float[2,3,128]", "float[128]"}},
          {LayerNorm{.axis = 1, .subtract_mean = false}, {"f32[3,5,7]", "", "f32[7]"}},
          {LayerNorm{.subtract_mean = false}, {"f32[4,33] in 90..110"}},
          {.op = LayerNorm{}, .in = {"f32[1024,384]", "f32[384]", "f32[384]"}, .bench = true},
          {.op = LayerNorm{}, .in = {"f32[16384,1024]", "f32[1024]", "f32[1024]"}, .bench = true},
          {LayerNorm{.axis = 2}, {"f32[2,3]", "f32[3]"}, "axis 2 is outside rank 2"},
          {LayerNorm{}, {"f32[2,3]", "f32[4]"}, "does not broadcast"},
          {LayerNorm{}, {"f32[2,1]", "f32[3]"}, "does not broadcast"},
          {LayerNorm{}, {"f32[2,3]", "f32[2,3]"}, "does not broadcast"}};
}

FORGE_DEFINE_OP(LayerNorm)

}  // namespace forge::ir
