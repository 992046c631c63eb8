// SPDX-License-Identifier: Apache-2.0
// Tensors beside each other.
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"

namespace forge::ir {

struct Tile {
  Dims repeats = {};

  static constexpr OpInfo kInfo{.name = "tile",
                                .formula = "y[i] = x[i modulo the extents of x]",
                                .inputs = "x: any[*d]",
                                .outputs = "y: =x[*r]",
                                .source = "ONNX Tile-13; torch.tile, torch.Tensor.repeat"};
  static constexpr Field kFields[] = {FieldOf<&Tile::repeats>(
      "repeats", "Copies along the last axes; more of them than x has axes add axes in front.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims& shape = in[0].type().shape();
    const size_t rank = std::max(shape.size(), repeats.size());
    Dims single, many, y;
    for (size_t i = 0; i < rank; ++i) {
      const size_t from = i + shape.size(), by = i + repeats.size();
      const Dim extent = from < rank ? Dim(1) : shape[from - rank];
      const Dim copies = by < rank ? Dim(1) : repeats[by - rank];
      if (copies.max() < 0) f.Fail(InvalidArgument("tile: {} copies", copies.ToText()));
      single.insert(single.end(), {Dim(1), extent});
      many.insert(many.end(), {copies, extent});
      y.push_back(copies * extent);
    }
    if (!f.status().ok()) return {in[0]};
    return {f(Reshape{y}, {f(BroadcastTo{many}, {f(Reshape{single}, {in[0]})})})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Tile{{2, 3}}, {"any[3,2]"}},
            {Tile{{2}}, {"float[2,3]"}},
            {Tile{{2, 1, 3}}, {"float[4]"}},
            {Tile{{3}}, {"f32[]"}},
            {Tile{{0, 2}}, {"f32[2,3]"}},
            {Tile{{2, 2}}, {"f32[0,3]"}},
            {Tile{{1, 2, 1, 1, 2}}, {"f32[1,2,3,1,2]"}},
            {Tile{}, {"f32[2]"}},
            {Tile{{-1}}, {"f32[2]"}, "-1 copies"},
            {Tile{{2, -3}}, {"f32[2]"}, "-3 copies"}};
  }
};
const OpDef& DefOf(const Tile*);

struct Stack {
  int64_t axis = 0;

  static constexpr OpInfo kInfo{
      .name = "stack",
      .formula = "y holds the operands one after another along a new axis",
      .inputs = "x: any...",
      .outputs = "y: =x[*s]",
      .source = "ONNX ConcatFromSequence-11; torch.stack"};
  static constexpr Field kFields[] = {
      FieldOf<&Stack::axis>("axis", "Of y; negative counts from the end.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (in.empty()) return f.Fail(InvalidArgument("stack of no operand")), Values{};
    const auto along = NormalAxis(axis, in[0].type().rank() + 1);
    if (!along.ok()) return f.Fail(along.status()), Values{in[0]};
    Values rows;
    for (const Value& x : in) {
      Dims shape = x.type().shape();
      if (shape.size() != in[0].type().shape().size())
        return f.Fail(
                   InvalidArgument("stack of {} and {}", in[0].type().ToText(), x.type().ToText())),
               Values{in[0]};
      shape.insert(shape.begin() + *along, 1);
      rows.push_back(f(Reshape{shape}, {x}));
    }
    return f.Add(Concat{.axis = *along}, rows);
  }
  [[gnu::cold]] static Cases cases() {
    return {{Stack{}, {"any[3,2]", "any[3,2]"}},
            {Stack{.axis = -1}, {"float[3]", "float[3]", "float[3]"}},
            {Stack{.axis = 1}, {"f32[2,3]"}},
            {Stack{}, {"f32[]", "f32[]", "f32[]", "f32[]", "f32[]"}},
            {Stack{.axis = 1}, {"f32[0,3]", "f32[0,3]"}},
            {Stack{}, {"f32[2]", "f32[3]"}, "3"},
            {Stack{}, {"f32[2]", "f32[2,1]"}, "stack of f32[2] and f32[2, 1]"},
            {Stack{.axis = 2}, {"f32[2]"}, "axis 2 is outside rank 2"}};
  }
};
const OpDef& DefOf(const Stack*);

}  // namespace forge::ir
