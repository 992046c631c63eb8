// SPDX-License-Identifier: Apache-2.0
// The functions of the element-wise table that schedules call, of f32 and f64: exp(x) and so on.
// Defined in codegen/region/element_family.h, as are those of the other families.
#pragma once
#include "codegen/kernel/scalar.h"

namespace forge::codegen {

#define FORGE_UNARY(T, name) Val name(Val x);
#define FORGE_BINARY(T, name) Val name(Val x, Val y);
#include "ir/ops/elementwise/families/exponential_list.inc"
#define FORGE_UNARY(T, name) Val name(Val x);
#define FORGE_BINARY(T, name) Val name(Val x, Val y);
#include "ir/ops/elementwise/families/hyperbolic_list.inc"

}  // namespace forge::codegen
