// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/update_slice.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/slice.h"

namespace forge::ir {
namespace {

Value Part(Value x, size_t axis, const Dim& begin, const Dim& end) {
  return (*x.fn)(Slice{.begin = {begin}, .end = {end}, .axes = {static_cast<int64_t>(axis)}}, {x});
}

// `update` in x, from the axis on.
Value Inserted(Value x, Value update, const Dims& begin, size_t axis) {
  const Dims& all = x.type().shape();
  const Dims& some = update.type().shape();
  while (axis < all.size() && all[axis] == some[axis]) ++axis;
  if (axis == all.size()) return update;
  const Dim& first = begin[axis];
  const Dim last = first + some[axis];
  const Value inner = Inserted(Part(x, axis, first, last), update, begin, axis + 1);
  return (*x.fn)(Concat{static_cast<int64_t>(axis)},
                 {Part(x, axis, 0, first), inner, Part(x, axis, last, all[axis])});
}

}  // namespace

absl::StatusOr<Types> UpdateSlice::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &update = in[1].shape();
  if (update.size() != x.size() || begin.size() != x.size())
    return InvalidArgument("x has {} axes, update {} and begin {}", x.size(), update.size(),
                           begin.size());
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const Dim after = x[axis] - begin[axis] - update[axis];
    const bool step = begin[axis].when() == When::kStep;  // is never checked again
    if (begin[axis].max() < 0 || after.max() < 0 ||
        (step && (begin[axis].min() < 0 || after.min() < 0)))
      return InvalidArgument("axis {}: {} elements from {} on do not lie in {}", axis,
                             update[axis].ToText(), begin[axis].ToText(), x[axis].ToText());
  }
  return Types{Type::Tensor(in[0].dtype(), x)};
}

Values UpdateSlice::decompose(Function&, ValueSpan in) const {
  return {Inserted(in[0], in[1], begin, 0)};
}

Cases UpdateSlice::cases() {
  const auto at = [](Dims begin) { return UpdateSlice{std::move(begin)}; };
  return {{at({1, 2}), {"any[4,8]", "any[2,4]"}},
          {at({0, 4, 0}), {"any[2,8,16]", "any[2,1,16]"}},
          {at({0, 3, 8}), {"f16[2,5,16]", "f16[2,2,8]"}},
          {at({1, 0, 3}), {"u8[3,2,7]", "u8[1,2,3]"}},
          {at({0, 0}), {"f32[3,5]", "f32[3,5]"}},
          {at({0, 2}), {"f32[3,5]", "f32[3,0]"}},
          {at({37}), {"float[64] edges", "float[19] edges"}},
          {at({}), {"f32[]", "f32[]"}},
          {at({0, 0}), {"f32[0,5]", "f32[0,2]"}},
          {.op = at({0, 0, 1000, 0}), .in = {"f16[1,8,2048,64]", "f16[1,8,1,64]"}, .bench = true},
          {at({3}), {"f32[4]", "f32[2]"}, "axis 0: 2 elements from 3 on do not lie in 4"},
          {at({-1}), {"f32[4]", "f32[2]"}, "do not lie in 4"},
          {at({0}), {"f32[4,4]", "f32[2,2]"}, "x has 2 axes, update 2 and begin 1"},
          {at({0, 0}), {"f32[4,4]", "f16[2,2]"}, "like x"}};
}

FORGE_DEFINE_OP(UpdateSlice)

}  // namespace forge::ir
