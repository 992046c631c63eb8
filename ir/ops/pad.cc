// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/pad.h"

#include "ir/module.h"
#include "ir/ops/define.h"

namespace forge::ir {

absl::StatusOr<Types> Pad::infer(TypeSpan in) const {
  const Dims& from = in[0].shape();
  if (before.size() != from.size() || after.size() != from.size())
    return InvalidArgument("{} before and {} after do not match rank {}", before.size(),
                           after.size(), from.size());
  Dims shape;
  for (size_t a = 0; a < from.size(); ++a) {
    shape.push_back(from[a] + before[a] + after[a]);
    if (shape[a].max() < 0)
      return InvalidArgument("axis {} is cropped by more than its extent {}", a, from[a].ToText());
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

IndexMap Pad::map(TypeSpan in, const Dims& at) const {
  IndexMap::Piece inside{.operand = 0, .index = {}};
  for (size_t a = 0; a < at.size(); ++a) {
    inside.index.push_back(at[a] - before[a]);
    if (before[a] != 0 || after[a] != 0)
      inside.when.push_back({.value = inside.index[a], .low = 0, .high = in[0].shape()[a]});
  }
  return {.pieces = {std::move(inside)}, .fill = value};
}

Values Pad::gradient(const GradArgs& g) const {
  Pad crop;
  for (size_t a = 0; a < before.size(); ++a) {
    crop.before.push_back(0 - before[a]);
    crop.after.push_back(0 - after[a]);
  }
  return {g.fn(crop, {g.dout[0]})};
}

Cases Pad::cases() {
  return {{Pad{{1, 0}, {2, 3}}, {"number|bool[2,3]"}},
          {Pad{{0, 0, 1, 1}, {0, 0, 1, 1}, -1.5}, {"float[1,2,3,3]"}},
          {Pad{{-1, 2}, {0, -2}, 7}, {"number[3,4]"}},
          {Pad{{-2}, {-3}}, {"f32[5]"}},
          {Pad{{0, 2}, {0, 0}, 1}, {"f32[0,3]"}},
          {Pad{{2}, {1}, 1}, {"f32[0]"}},
          {Pad{{}, {}}, {"f32[]"}},
          {.op = Pad{{0, 0, 3, 3}, {0, 0, 3, 3}}, .in = {"f32[8,64,112,112]"}, .bench = true},
          {Pad{{1}, {1}}, {"f32[2,3]"}, "do not match rank 2"},
          {Pad{{-2, 0}, {-1, 0}}, {"f32[2,3]"}, "cropped"}};
}

FORGE_DEFINE_OP(Pad)

}  // namespace forge::ir
