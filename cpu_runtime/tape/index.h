// SPDX-License-Identifier: Apache-2.0
// Analysis of index expressions.
#pragma once
#include <optional>

#include "ir/type/type.h"

namespace forge::cpu {

// The affine expression constant + sum of coefficient * symbol.
struct Affine {
  int64_t constant = 0;
  std::map<ir::SymbolRef, int64_t> coefficients;  // nonzero
};

// Returns `d` as an affine expression; nullopt where it is not affine or not recognised as affine.
// Flattening and unflattening cancel.
std::optional<Affine> AsAffine(const ir::Dim& d);

}  // namespace forge::cpu
