// SPDX-License-Identifier: Apache-2.0
// Arithmetic of indices: between the axes of a row-major tensor and the number of an element in it.
#pragma once
#include "ir/op/op.h"

namespace forge::codegen {

// A new coordinate in [0, max], a multiple of `divisor`.
ir::SymbolRef NewCoordinate(std::string name, int64_t max, int64_t divisor = 1);
// The number of the element at `index` of a tensor of `shape`.
ir::Dim Flatten(const ir::Dims& index, const ir::Dims& shape);
// The index of element `flat`, which lies inside.
ir::Dims Unflatten(const ir::Dim& flat, const ir::Dims& shape);
// The index of the operand element that meets `index` of the result by the NumPy rule.
ir::Dims BroadcastIndex(const ir::Dims& index, const ir::Dims& operand_shape);
ir::Dims Substitute(const ir::Dims& index, const std::map<ir::SymbolRef, ir::Dim>& by);
// Does the expression hold `symbol`?
bool DependsOn(const ir::Dim& d, const ir::SymbolRef& symbol);
bool DependsOn(const ir::Dims& index, const ir::SymbolRef& symbol);
bool AlwaysHolds(const ir::IndexMap::Range& range);  // wherever the index is
// The largest index of an axis of this extent; 0 where the axis is empty.
int64_t LastIndex(const ir::Dim& extent);

// An expression as base + 1 * lane, when it is one whose base is a multiple of `lanes`.
std::optional<ir::Dim> AlignedBase(const ir::Dim& d, const ir::SymbolRef& lane, int lanes);

}  // namespace forge::codegen
