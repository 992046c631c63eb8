// SPDX-License-Identifier: Apache-2.0
// Products in f16 or bf16 beside everything else in f32.
#pragma once
#include "ir/graph/copier.h"

namespace forge::ir {

// Copies a node. If it is a product (OpInfo::product) of f32, its operands are rounded to
// `precision`, and its results are f32 again.
//   precision: kF32 (copies it as it is), kF16 or kBF16
void CopyAtPrecision(const Node& node, DType precision, Copier& copy, Function& out);

}  // namespace forge::ir
