// SPDX-License-Identifier: Apache-2.0
// Which operands a result may take the place of: those that are read at the very element that is
// being written, after everything else about it is known.
#pragma once
#include <optional>

#include "ir/graph/module.h"

namespace forge::ir {

// Arguments of a region whose memory its only result may take, as far as the formulas go: every
// path from them leads through element-wise ops alone. Element types narrower than 32 bits share
// words with their neighbours and are left out.
std::vector<uint32_t> OverwritableArguments(const Function& body);
// Operands of a node without an anchor, by number.
std::vector<uint32_t> OverwritableOperands(const AnyOp& op, TypeSpan in, const Type& out);
// A kernel of these writes a part of its result, which has the bytes of an operand before.
struct InPlaceUpdate {
  uint32_t operand = 0;
  Type written;  // as large as the part
};
// Of a region: its only result is the anchor's, whose op has OpInfo::in_place, and nothing else
// reads the argument that is taken over. Numbered among arguments.
std::optional<InPlaceUpdate> UpdateOf(const Function& body);

// Has the region a node that is neither element-wise nor movement?
bool HasAnchor(const Function& body);

}  // namespace forge::ir
