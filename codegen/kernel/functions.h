// SPDX-License-Identifier: Apache-2.0
// Functions of the element-wise table for schedules, in f32 and f64: exp(x) ... All families are
// defined in codegen/region/element_rows.cc.
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
