// SPDX-License-Identifier: Apache-2.0
// y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]: the common part of matmul and
// matmul_integer.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct MatrixProduct {
  bool transpose_a = false, transpose_b = false;  // stored as [..., k, i] and [..., j, k]

  // Returns the shape of the result; leading axes broadcast. errors: InvalidArgument (extents do
  // not agree)
  absl::StatusOr<Dims> Shape(TypeSpan in) const;
  absl::Status Evaluate(Eval& e) const;
  Cost CostOf(TypeSpan in) const;
};

}  // namespace forge::ir
