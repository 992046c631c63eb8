// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/transpose.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"

namespace forge::ir {
namespace {

bool IsPermutation(std::span<const int64_t> p, int64_t rank) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t axis : p) {
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)]) return false;
    seen[static_cast<size_t>(axis)] = true;
  }
  return static_cast<int64_t>(p.size()) == rank;
}

}  // namespace

absl::StatusOr<Types> Transpose::infer(TypeSpan in) const {
  if (!IsPermutation(permutation, in[0].rank()))
    return InvalidArgument("[{}] does not name each axis of rank {} once",
                           fmt::join(permutation, ", "), in[0].rank());
  Dims shape;
  for (int64_t axis : permutation) shape.push_back(in[0].shape()[static_cast<size_t>(axis)]);
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

IndexMap Transpose::map(TypeSpan, const Dims& at) const {
  Dims index(at.size());
  for (size_t i = 0; i < at.size(); ++i) index[static_cast<size_t>(permutation[i])] = at[i];
  return {.pieces = {{.operand = 0, .index = std::move(index)}}};
}

Values Transpose::gradient(const GradArgs& g) const {
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {g.fn(Transpose{std::move(inverse)}, {g.dout[0]})};
}

Cases Transpose::cases() {
  return {{Transpose{{1, 0}}, {"any[3,5]"}},
          {Transpose{{0, 2, 3, 1}}, {"any[2,3,4,5]"}},
          {Transpose{{2, 0, 1}}, {"f32[1,33,7]"}},
          {Transpose{{}}, {"any[]"}},
          {Transpose{{1, 0, 2}}, {"any[0,2,3]"}},
          {.op = Transpose{{1, 0}}, .in = {"f32[4096,4096]"}, .bench = true},
          {.op = Transpose{{0, 2, 1, 3}}, .in = {"f32[8,1024,32,64]"}, .bench = true},
          {Transpose{{0, 0}}, {"f32[2,3]"}, "each axis"},
          {Transpose{{0, 1, 2}}, {"f32[2,3]"}, "each axis"}};
}

FORGE_DEFINE_OP(Transpose)

}  // namespace forge::ir
