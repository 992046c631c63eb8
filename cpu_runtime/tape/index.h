// SPDX-License-Identifier: Apache-2.0
// Index expressions taken apart.
#pragma once
#include <optional>

#include "ir/type/type.h"

namespace forge::cpu {

// constant + sum of coefficient * symbol
struct Affine {
  int64_t constant = 0;
  std::map<ir::SymbolRef, int64_t> coefficients;  // none is 0
};

// Nullopt where `d` is not affine, or not seen to be. Flattening and unflattening cancel.
std::optional<Affine> AsAffine(const ir::Dim& d);

}  // namespace forge::cpu
