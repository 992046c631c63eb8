// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/reshape.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"

namespace forge::ir {
namespace {

// Axes [i, i + a) of the operand hold the elements of axes [j, j + b) of the result.
struct AxisGroup {
  size_t i, a, j, b;
};

// The smallest group that begins at (i, j); all that is left when no products are proven equal.
AxisGroup NextGroup(const Dims& from, const Dims& to, size_t i, size_t j) {
  constexpr size_t kMaxAxes = 16;  // the search is quadratic
  const size_t n = from.size() - i, m = to.size() - j;
  if (n <= kMaxAxes && m <= kMaxAxes)
    for (size_t total = 2; total <= n + m; ++total)
      for (size_t a = total > m ? total - m : 1; a <= n && a < total; ++a)
        if (Product(std::span(from).subspan(i, a)) == Product(std::span(to).subspan(j, total - a)))
          return {i, a, j, total - a};
  return {i, n, j, m};
}

// Indices of a group's operand axes from those of its result axes.
void MapGroup(const AxisGroup& g, const Dims& from, const Dims& to, const Dims& at, Dims& index) {
  Dim flat = 0;
  for (size_t k = 0; k < g.b; ++k) flat = flat * to[g.j + k] + at[g.j + k];
  for (size_t k = g.a; k-- > 0;) {
    const Dim& extent = from[g.i + k];
    index[g.i + k] = k == 0 ? flat : Mod(flat, extent);
    if (k > 0) flat = FloorDiv(flat, extent);
  }
}

}  // namespace

absl::StatusOr<Types> Reshape::infer(TypeSpan in) const {
  for (const Dim& d : shape)
    if (d.max() < 0) return InvalidArgument("shape {} has a negative dimension", ToText(shape));
  if (!Unify(in[0].elements(), Product(shape)).ok())
    return InvalidArgument("{} does not have the elements of {}", ToText(shape),
                           ToText(in[0].shape()));
  return Types{Type::Tensor(in[0].dtype(), shape)};
}

IndexMap Reshape::map(TypeSpan in, const Dims& at) const {
  const Dims& from = in[0].shape();
  Dims index(from.size());
  size_t i = 0, j = 0;
  // What is left on one side alone has extent 1 and index 0.
  while (i < from.size() && j < shape.size()) {
    const AxisGroup g = NextGroup(from, shape, i, j);
    MapGroup(g, from, shape, at, index);
    i += g.a;
    j += g.b;
  }
  return {.pieces = {{.operand = 0, .index = std::move(index)}}};
}

Values Reshape::gradient(const GradArgs& g) const {
  return {g.fn(Reshape{g.in[0].type().shape()}, {g.dout[0]})};
}

Cases Reshape::cases() {
  return {{Reshape{{6, 4}}, {"any[2,3,4]"}},
          {Reshape{{2, 3, 4, 1}}, {"any[24]"}},
          {Reshape{{}}, {"any[1,1]"}},
          {Reshape{{1, 1, 1}}, {"any[]"}},
          {Reshape{{4, 9}}, {"f32[6,6]"}},
          {Reshape{{2, 5, 3, 14}}, {"f32[10,6,7]"}},
          {Reshape{{7, 0}}, {"any[0,3]"}},
          {.op = Reshape{{64, 3136}}, .in = {"f32[64,64,49]"}, .bench = true},
          {Reshape{{5}}, {"f32[2,3]"}, "does not have the elements"},
          {Reshape{{-1, -6}}, {"f32[2,3]"}, "negative"}};
}

FORGE_DEFINE_OP(Reshape)

}  // namespace forge::ir
