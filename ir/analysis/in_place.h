// SPDX-License-Identifier: Apache-2.0
// Which operands a result may take the place of: those that are read at the very element that is
// being written, after everything else about it is known.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// Arguments of a region whose memory its only result may take, as far as the formulas go: every
// path from them leads through element-wise ops alone. Element types narrower than 32 bits share
// words with their neighbours and are left out.
std::vector<uint32_t> OverwritableArguments(const Function& body);
// Operands of a node without an anchor, by number.
std::vector<uint32_t> OverwritableOperands(const AnyOp& op, TypeSpan in, const Type& out);
// Has the region a node that is neither element-wise nor movement?
bool HasAnchor(const Function& body);

}  // namespace forge::ir
