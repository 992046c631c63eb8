// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Fill {
  Number value = {};
  DType dtype = DType::kF32;
  Dims shape = {};

  static constexpr OpInfo kInfo{.name = "fill",
                                .formula = "y = value everywhere",
                                .inputs = "",
                                .outputs = "y: =dtype[*s]",
                                .source = "ONNX ConstantOfShape-9; torch.full"};
  static constexpr Field kFields[] = {
      FieldOf<&Fill::value>("value", "Converted to `dtype` as `cast` does."),
      FieldOf<&Fill::dtype>("dtype", "Element type of the result."),
      FieldOf<&Fill::shape>("shape", "Shape of the result; [] is a scalar.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values decompose(Function& f, ValueSpan in) const;  // of complex numbers
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Fill*);

}  // namespace forge::ir
