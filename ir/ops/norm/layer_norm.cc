// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/norm/layer_norm.h"

#include <algorithm>

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/norm/layer_norm_gradient.h"
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
  Types out{Type::Tensor(in[0].dtype(), x)};
  if (statistics) {
    Dims kept = x;
    std::fill(kept.begin() + first, kept.end(), Dim(1));
    out.insert(out.end(), 2, Type::Tensor(WideOf(in[0].dtype()), kept));
  }
  return out;
}

std::vector<int64_t> AxesOfNorm(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t a = axis < 0 ? axis + rank : axis; a < rank; ++a) axes.push_back(a);
  return axes;
}

Values LayerNorm::decompose(Function& f, ValueSpan in) const {
  const Type type = in[0].type();
  if (const auto first = NormalAxis(axis, type.rank()); !first.ok())
    return f.Fail(first.status()), Values{in[0]};
  const std::vector<int64_t> axes = AxesOfNorm(axis, type.rank());
  const Value x = Widened(in[0]), mean = ReduceAxes(ReduceKind::kMean, x, axes);
  const Value centred = subtract_mean ? x - mean : x;
  const Value variance = ReduceAxes(ReduceKind::kMean, centred * centred, axes);
  const Value deviation = sqrt(variance + epsilon);
  Value y = centred / deviation;
  if (in[1]) y = y * Widened(in[1]);
  if (in[2]) y = y + Widened(in[2]);
  Values out{Narrowed(y, type.dtype())};
  if (!statistics) return out;
  const Type& kept = mean.type();
  out.push_back(subtract_mean ? mean : f(Fill{0, kept.dtype(), kept.shape()}, {}));
  out.push_back(1.0 / deviation);
  return out;
}

// With r = 1 / deviation and z = (x - mean) r: dr / dx = -r r z / N.
Values LayerNorm::gradient(const GradArgs& g) const {
  const Value x = Widened(g.in[0]), mean = g.out[1], r = g.out[2];
  Values d(g.in.size());
  const auto add = [](Value& sum, Value v) { sum = sum ? sum + v : v; };
  if (g.dout[0]) {
    const auto given = [&](size_t i) { return i < g.in.size() ? g.in[i] : Value{}; };
    const Value gamma = given(1), beta = given(2);
    const LayerNormGradient op{.axis = axis, .columns = gamma || beta};
    const Value operands[] = {g.dout[0], g.in[0], r, subtract_mean ? mean : Value{}, gamma};
    const Values all = g.fn.Add(op, operands);
    d[0] = Widened(all[0]);
    if (gamma) d[1] = SumTo(all[1], gamma.type().shape());
    if (beta) d[2] = SumTo(all[2], beta.type().shape());
  }
  Value of_statistics;
  if (g.dout[1] && subtract_mean) of_statistics = g.dout[1];
  if (g.dout[2]) {
    const Value z = (subtract_mean ? x - mean : x) * r;
    add(of_statistics, -(g.dout[2] * r * r * z));
  }
  if (of_statistics) {
    const Type& t = x.type();
    const Value ones = g.fn(Fill{1, t.dtype(), t.shape()}, {});
    const Value count = ReduceAxes(ReduceKind::kSum, ones, AxesOfNorm(axis, x.type().rank()));
    add(d[0], ones * of_statistics / count);
  }
  for (size_t i = 0; i < d.size(); ++i)
    if (d[i]) d[i] = Narrowed(d[i], g.in[i].type().dtype());
  return d;
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
          {LayerNorm{.statistics = true}, {"float[2,3,8]", "float[8]", "float[8]"}},
          {LayerNorm{.axis = -2, .statistics = true}, {"float[4,5,33]"}},
          {LayerNorm{.axis = 0, .statistics = true}, {"f32[3,5]", "", "f32[5]"}},
          {LayerNorm{.subtract_mean = false, .statistics = true}, {"f32[5,300]", "f32[300]"}},
          {LayerNorm{.statistics = true}, {"f32[7,1000] in 90..110"}},
          {LayerNorm{.statistics = true}, {"f32[2,0,4]"}},
          {LayerNorm{.statistics = true}, {"f32[3,0]"}},
          {.op = LayerNorm{}, .in = {"f32[1024,384]", "f32[384]", "f32[384]"}, .bench = true},
          {.op = LayerNorm{}, .in = {"f32[16384,1024]", "f32[1024]", "f32[1024]"}, .bench = true},
          {.op = LayerNorm{.statistics = true}, .in = {"f32[1024,384]", "f32[384]"}, .bench = true},
          {LayerNorm{.axis = 2}, {"f32[2,3]", "f32[3]"}, "axis 2 is outside rank 2"},
          {LayerNorm{}, {"f32[2,3]", "f32[4]"}, "does not broadcast"},
          {LayerNorm{}, {"f32[2,1]", "f32[3]"}, "does not broadcast"},
          {LayerNorm{}, {"f32[2,3]", "f32[2,3]"}, "does not broadcast"}};
}

FORGE_DEFINE_OP(LayerNorm)

}  // namespace forge::ir
