// SPDX-License-Identifier: Apache-2.0
// Products of complex values along the last axis, whose extent must be known. No identity splits
// such a product into real ones, so it takes a step for each doubling of the extent.
#pragma once
#include "ir/ops/complex/parts.h"

namespace forge::ir {

// The product of all elements along the last axis, [.., n] to [.., 1]; of none 1.
//   errors: Unimplemented (n is not known), in the status of the function
ComplexParts ProductAlongLast(ComplexParts z);

struct RunningProduct {
  bool exclusive = false, reverse = false;  // as of Scan
};
// The products of the elements up to each along the last axis.  errors: as above
ComplexParts ProductsAlongLast(ComplexParts z, const RunningProduct& how);

}  // namespace forge::ir
