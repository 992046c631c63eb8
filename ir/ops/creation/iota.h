// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Iota {
  DType dtype = DType::kI64;
  Dim begin = 0, step = 1, count = 0, modulus = 0;

  static constexpr OpInfo kInfo{.name = "iota",
                                .formula = "y[i] = begin + i * step, i from 0 to count - 1",
                                .inputs = "",
                                .outputs = "y: =dtype[n]",
                                .source = "ONNX Range-11; torch.arange"};
  static constexpr Field kFields[] = {
      FieldOf<&Iota::dtype>("dtype", "Element type of the result; numbers convert as `cast` does."),
      FieldOf<&Iota::begin>("begin", "The first number."),
      FieldOf<&Iota::step>("step", "From one number to the next."),
      FieldOf<&Iota::count>("count", "How many; a negative count is none."),
      FieldOf<&Iota::modulus>("modulus", "Numbers are taken modulo this, never negative; 0: not.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Iota*);

// Returns a scalar that holds an extent.
Value ScalarOf(Function& f, const Dim& extent, DType t);

}  // namespace forge::ir
