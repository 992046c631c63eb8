// SPDX-License-Identifier: Apache-2.0
#include "codegen/element.h"

#include <algorithm>
#include <cmath>

namespace forge::codegen {

Val LiteralOf(Builder& b, DType t, double x) {
  if (t == DType::kBool) x = x != 0;
  if (Has(kIntTypes, t) && BitWidth(t) < 32) {
    const bool is_signed = Has(kSignedTypes, t);
    const double high = std::ldexp(1.0, BitWidth(t) - (is_signed ? 1 : 0)) - 1;
    const double low = is_signed ? -high - 1 : 0;
    x = std::isnan(x) ? 0 : std::trunc(std::clamp(x, low, high));
  }
  return b.Literal(Type{ComputeType(t)}, x);
}

}  // namespace forge::codegen
