// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class ScatterMode : uint8_t { kSet, kAdd, kMul, kMin, kMax };

struct Scatter {
  int64_t axis = 0;
  ScatterMode mode = ScatterMode::kSet;

  static constexpr Alias kInPlace[] = {{.output = 0, .input = 0, .written = 2}};
  static constexpr OpInfo kInfo{
      .name = "scatter",
      .formula =
          "y is x, then for each i in order y[a.., indices[a.., i, b..], b..] becomes mode of "
          "itself and updates[a.., i, b..]; negative indices wrap once, an index outside drops its "
          "update",
      .inputs = "x: number|bool[*d]; indices: i32|i64[*i]; updates: =x[*u]",
      .outputs = "y: =x",
      .source = "ONNX ScatterElements-18; torch.scatter, scatter_add, scatter_reduce",
      .in_place = kInPlace};
  static constexpr Field kFields[] = {
      FieldOf<&Scatter::axis>("axis",
                              "That the indices, which broadcast to updates, count along; negative "
                              "counts from the end. Updates fit in x along the others."),
      FieldOf<&Scatter::mode>(
          "mode",
          "What an element becomes; of several updates set keeps the last. "
          "bool is only set; min and max take no complex numbers, and propagate NaN.",
          "set|add|mul|min|max")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  OnComplex on_complex() const {
    const bool linear = mode == ScatterMode::kSet || mode == ScatterMode::kAdd;
    return linear ? OnComplex::kEach : OnComplex::kNone;
  }
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Scatter*);

// Appends a scatter of one number to every element of x that an index of `indices` selects along
// `axis`; `updates` is the shape that the indices broadcast to.
Value ScatterNumber(Value x, Value indices, const Dims& updates, int64_t axis,
                    const Number& number);

}  // namespace forge::ir
