// SPDX-License-Identifier: Apache-2.0
// Index arithmetic of row-major tensors.
#pragma once
#include "ir/op/op.h"

namespace forge::codegen {

// Creates a coordinate: a symbol in [0, max] that is a multiple of `divisor`.
ir::SymbolRef NewCoordinate(std::string name, int64_t max, int64_t divisor = 1);
// Returns the flat index of the element at `index`.
ir::Dim Flatten(const ir::Dims& index, const ir::Dims& shape);
// Returns the index of element `flat`, which must be inside.
ir::Dims Unflatten(const ir::Dim& flat, const ir::Dims& shape);
// Returns the operand index for `index` of the result, by the NumPy broadcast rule.
ir::Dims BroadcastIndex(const ir::Dims& index, const ir::Dims& operand_shape);
ir::Dims Substitute(const ir::Dims& index, const std::map<ir::SymbolRef, ir::Dim>& by);
// True when the expression contains `symbol`.
bool DependsOn(const ir::Dim& d, const ir::SymbolRef& symbol);
bool DependsOn(const ir::Dims& index, const ir::SymbolRef& symbol);
bool AlwaysHolds(const ir::IndexMap::Range& range);  // for all values of its symbols
// The largest index of an axis; 0 if the axis is empty.
int64_t LastIndex(const ir::Dim& extent);

// Returns `base` if the expression is base + lane and `base` is a multiple of `lanes`.
std::optional<ir::Dim> AlignedBase(const ir::Dim& d, const ir::SymbolRef& lane, int lanes);

}  // namespace forge::codegen
