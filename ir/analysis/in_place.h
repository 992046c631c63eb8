// SPDX-License-Identifier: Apache-2.0
// In-place analysis: operands whose memory a result may reuse, because each of their elements is
// read only for the result element at the same place.
#pragma once
#include <optional>

#include "ir/graph/module.h"

namespace forge::ir {

// True when every use of a value of a region leads through element-wise ops of its shape: each of
// its elements is read only for the elements at the same place.
bool StaysInPlace(const Function& body, uint32_t value);

// A result may take the memory of an operand.
struct Overwrite {
  uint32_t operand = 0, result = 0;
  friend bool operator==(const Overwrite&, const Overwrite&) = default;
};
// Returns the arguments of a region whose memory a result may reuse: all their uses lead through
// element-wise ops, and an element that the result overwrites was read for what the result is
// computed from. Element types narrower than 32 bits are left out, because neighbours share a word.
std::vector<Overwrite> OverwritableArguments(const Function& body);
// The same for the operands of a node without an anchor.
std::vector<Overwrite> OverwritableOperands(const AnyOp& op, TypeSpan in, TypeSpan out);
// An update in place: the kernel writes a part of its result, whose memory already has the content
// of an operand.
struct InPlaceUpdate {
  uint32_t operand = 0;
  Type written;  // the type of the part
};
// Returns the update that a region performs: its only result is that of the anchor, whose op has
// OpInfo::in_place, and the updated argument has no other reader. `operand` counts arguments.
std::optional<InPlaceUpdate> UpdateOf(const Function& body);

// True when the region has an anchor: a node that is neither element-wise nor a movement op.
bool HasAnchor(const Function& body);

}  // namespace forge::ir
