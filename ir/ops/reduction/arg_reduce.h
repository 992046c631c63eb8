// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class ArgReduceKind : uint8_t { kMax, kMin };

struct ArgReduce {
  ArgReduceKind kind = ArgReduceKind::kMax;
  int64_t axis = -1;
  bool all = false, keep_dims = true, select_last_index = false;

  static constexpr OpInfo kInfo{
      .name = "arg_reduce",
      .formula =
          "y = the index along axis of the largest or smallest x; the first of equal ones, "
          "of which NaN is the most extreme",
      .inputs = "x: ordered[*d]",
      .outputs = "y: i64[*r]",
      .source = "ONNX ArgMax-13, ArgMin-13; torch.argmax, argmin"};
  static constexpr Field kFields[] = {
      FieldOf<&ArgReduce::kind>("kind", "Which element is meant.", "max|min"),
      FieldOf<&ArgReduce::axis>("axis", "Negative counts from the end."),
      FieldOf<&ArgReduce::all>("all",
                               "Over all axes, as an index in row-major order; axis is unused."),
      FieldOf<&ArgReduce::keep_dims>("keep_dims", "Keeps reduced axes with extent 1."),
      FieldOf<&ArgReduce::select_last_index>("select_last_index",
                                             "The last of equal elements, not the first.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  static constexpr Zero gradient{};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ArgReduce*);

}  // namespace forge::ir
