// SPDX-License-Identifier: Apache-2.0
#include "codegen/functions.h"

#include "codegen/scalar.h"

namespace forge::codegen {

// What ir/scalar_functions.h asks of a scalar type.
Val round_even(Val x) { return rint(x); }

Val exp2_int(Val i) {
  if (i.type().elem == DType::kF64)
    return bitcast((convert(i, DType::kI64) + 1023) << 52, DType::kF64);
  return bitcast((convert(i, DType::kI32) + 127) << 23, DType::kF32);
}

}  // namespace forge::codegen

#include "ir/scalar_functions.h"

namespace forge::codegen {

Val exp(Val x) { return x.type().elem == DType::kF64 ? ir::ExpF64(x) : ir::ExpF32(x); }

}  // namespace forge::codegen
