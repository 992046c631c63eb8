// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class ReduceKind : uint8_t { kSum, kMean, kMax, kMin, kProd };

struct Reduce {
  ReduceKind kind = ReduceKind::kSum;
  std::vector<int64_t> axes = {};
  bool keep_dims = true;

  static constexpr OpInfo kInfo{
      .name = "reduce",
      .formula = "y = kind of x over axes; over no element: 0, NaN, lowest, highest, 1",
      .inputs = "x: number[*d]",
      .outputs = "y: =x[*r]",
      .source = "ONNX ReduceSum-13 and its kin; torch.sum, mean, amax, amin, prod"};
  static constexpr Field kFields[] = {
      FieldOf<&Reduce::kind>(
          "kind", "Mean takes no integers; max and min take no complex numbers, and propagate NaN.",
          "sum|mean|max|min|prod"),
      FieldOf<&Reduce::axes>("axes", "Negative ones count from the end; none means all."),
      FieldOf<&Reduce::keep_dims>("keep_dims", "Keeps reduced axes with extent 1.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  OnComplex on_complex() const {
    const bool sums = kind == ReduceKind::kSum || kind == ReduceKind::kMean;
    return sums ? OnComplex::kEach : OnComplex::kNone;
  }
  Values decompose_complex(Function& f, ValueSpan in) const;
  std::optional<Dims> contents(TypeSpan in, std::span<const std::optional<Dims>> known) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Reduce*);

// Appends a reduction that keeps its axes with extent 1.
Value ReduceAxes(ReduceKind kind, Value x, std::vector<int64_t> axes);
// Drops `axes`, of extent 1; none means all, negative ones count from the end.
Value WithoutAxes(Value x, const std::vector<int64_t>& axes);
// Gives the reduction `y` of a tensor of `shape` over `axes` these axes with extent 1 if it lacks
// them.
Value WithAxes(Value y, const Dims& shape, const std::vector<int64_t>& axes);
// Reverses a broadcast: sums `x` over the axes along which a tensor of `shape` was repeated, and
// drops the leading axes that it lacks.
Value SumTo(Value x, Dims shape);

}  // namespace forge::ir
