// SPDX-License-Identifier: Apache-2.0
// Writes of slices that a list of indices selects along an axis.
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/indexing/index_arithmetic.h"

namespace forge::ir {

struct IndexAdd {
  int64_t axis = 0;
  Number alpha = 1;

  static constexpr OpInfo kInfo{
      .name = "index_add",
      .formula = "y is x, and y[a.., indices[i], b..] grows by alpha * updates[a.., i, b..]",
      .inputs = "x: number[*d]; indices: i32|i64[n]; updates: =x[*u]",
      .outputs = "y: =x",
      .source = "torch.index_add"};
  static constexpr Field kFields[] = {
      FieldOf<&IndexAdd::axis>("axis", "As of `scatter`."),
      FieldOf<&IndexAdd::alpha>("alpha", "Converted as by `fill`.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Scatter add{axis, ScatterMode::kAdd};
    const Value indices = OnAxis(in[1], axis, in[0].type().rank());
    if (alpha == Number(1)) return {f(add, {in[0], indices, in[2]})};
    const Value x = Widened(in[0]), updates = Widened(in[2]);
    const Value factor = f(Fill{alpha, updates.type().dtype(), {}}, {});
    return {Narrowed(f(add, {x, indices, updates * factor}), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{IndexAdd{}, {"number[5,3]", "i64[4] in -5..4", "number[4,3]"}},
            {IndexAdd{1, 2}, {"real[2,7,3]", "i32[9] in -7..6", "real[2,9,3]"}},
            {IndexAdd{-1, -0.5}, {"float[3,5]", "i64[60] in 0..4", "float[3,60]"}},
            {IndexAdd{}, {"f32[1]", "i64[3] in -1..1", "f32[3]"}},
            {IndexAdd{}, {"f32[3,2]", "i64[0]", "f32[0,2]"}},
            {IndexAdd{2}, {"f32[2,3]", "i64[2]", "f32[2,3]"}, "axis 2 is outside rank 2"},
            {IndexAdd{}, {"f32[2,3]", "i64[2]", "f32[4,3]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const IndexAdd*);

struct IndexCopy {
  int64_t axis = 0;

  static constexpr OpInfo kInfo{
      .name = "index_copy",
      .formula = "y is x, but y[a.., indices[i], b..] = updates[a.., i, b..], the last of several",
      .inputs = "x: number|bool[*d]; indices: i32|i64[n]; updates: =x[*u]",
      .outputs = "y: =x",
      .source = "torch.index_copy"};
  static constexpr Field kFields[] = {FieldOf<&IndexCopy::axis>("axis", "As of `scatter`.")};

  Values decompose(Function& f, ValueSpan in) const {
    return {f(Scatter{axis}, {in[0], OnAxis(in[1], axis, in[0].type().rank()), in[2]})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{IndexCopy{}, {"number[5,3]", "i64[4] in -5..4", "number[4,3]"}},
            {IndexCopy{1}, {"bool[2,7,3]", "i32[9] in -9..9", "bool[2,9,3]"}},
            {IndexCopy{-1}, {"float[3,50]", "i64[3] in -50..49", "float[3,3]"}},
            {IndexCopy{}, {"f32[3,2]", "i64[0]", "f32[0,2]"}},
            {IndexCopy{2}, {"f32[2,3]", "i64[2]", "f32[2,3]"}, "axis 2 is outside rank 2"},
            {IndexCopy{}, {"f32[2,3]", "i64[2]", "f32[2,4]"}, "axis 1 has 4 updates for 3"}};
  }
};
const OpDef& DefOf(const IndexCopy*);

struct IndexFill {
  int64_t axis = 0;
  Number value = {};

  static constexpr OpInfo kInfo{.name = "index_fill",
                                .formula = "y is x, but y[a.., indices[i], b..] = value",
                                .inputs = "x: number|bool[*d]; indices: i32|i64[n]",
                                .outputs = "y: =x",
                                .source = "torch.index_fill"};
  static constexpr Field kFields[] = {
      FieldOf<&IndexFill::axis>("axis", "As of `scatter`."),
      FieldOf<&IndexFill::value>("value", "Converted as by `fill`.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Type& x = in[0].type();
    const auto along = NormalAxis(axis, x.rank());
    if (!along.ok()) return f.Fail(along.status()), Values{in[0]};
    Dims updates = x.shape();
    updates[static_cast<size_t>(*along)] = in[1].type().elements();
    return {ScatterNumber(in[0], OnAxis(in[1], axis, x.rank()), updates, *along, value)};
  }
  [[gnu::cold]] static Cases cases() {
    return {{IndexFill{0, 3}, {"number[5,3]", "i64[4] in -5..4"}},
            {IndexFill{1, true}, {"bool[2,7,3]", "i32[3] in -9..9"}},
            {IndexFill{-1, -0.5}, {"float[3,5]", "i64[2] in 0..4"}},
            {IndexFill{}, {"f32[3,2]", "i64[0]"}},
            {IndexFill{2}, {"f32[2,3]", "i64[2]"}, "axis 2 is outside rank 2"},
            {IndexFill{}, {"f32[]", "i64[2]"}, "axis 0 is outside rank 0"}};
  }
};
const OpDef& DefOf(const IndexFill*);

struct Put {
  bool accumulate = false;

  static constexpr OpInfo kInfo{
      .name = "put",
      .formula =
          "y is x, but element indices[i] of it, in row-major order, is or grows by "
          "element i of updates",
      .inputs = "x: number|bool[*d]; indices: i32|i64[*i]; updates: =x[*i]",
      .outputs = "y: =x",
      .source = "torch.Tensor.put"};
  static constexpr Field kFields[] = {
      FieldOf<&Put::accumulate>("accumulate", "Adds, else the last of several stays.")};

  Values decompose(Function& f, ValueSpan in) const {
    const auto flat = [&](Value v) { return f(Reshape{{v.type().elements()}}, {v}); };
    const Scatter op{0, accumulate ? ScatterMode::kAdd : ScatterMode::kSet};
    return {f(Reshape{in[0].type().shape()}, {f(op, {flat(in[0]), flat(in[1]), flat(in[2])})})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Put{}, {"number[5,3]", "i64[4,2] in -17..16", "number[4,2]"}},
            {Put{true}, {"real[3,4]", "i32[40] in -13..12", "real[40]"}},
            {Put{}, {"bool[2,2]", "i64[3] in -4..3", "bool[3]"}},
            {Put{}, {"f32[30,50]", "i64[9] in -1500..1499", "f32[9]"}},
            {Put{true}, {"f32[]", "i64[] in -1..1", "f32[]"}},
            {Put{}, {"f32[3]", "i64[0]", "f32[0]"}},
            {Put{true}, {"bool[4]", "i64[2]", "bool[2]"}, "bool are only set"},
            {Put{}, {"f32[4]", "i64[2]", "f32[3]"}, "updates"}};
  }
};
const OpDef& DefOf(const Put*);

struct Take {
  static constexpr OpInfo kInfo{
      .name = "take",
      .formula = "y[i..] is element indices[i..] of x in row-major order; indices as of `gather`",
      .inputs = "x: any[*d]; indices: i32|i64[*i]",
      .outputs = "y: =x[*i]",
      .source = "torch.take"};

  Values decompose(Function& f, ValueSpan in) const {
    return {f(Gather{}, {f(Reshape{{in[0].type().elements()}}, {in[0]}), in[1]})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Take{}, {"any[5,3]", "i64[4,2] in -15..14"}},
            {Take{}, {"f32[2,3,4]", "i32[30] in -30..30"}},
            {Take{}, {"f64[2,3]", "i64[] in 0..5"}},
            {Take{}, {"f32[]", "i64[2] in -1..0"}},
            {Take{}, {"f32[0,3]", "i64[2] in 0..1"}},
            {Take{}, {"f32[3]", "i64[0]"}},
            {Take{}, {"f32[3]", "f32[2]"}, "indices"}};
  }
};
const OpDef& DefOf(const Take*);

}  // namespace forge::ir
