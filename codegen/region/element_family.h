// SPDX-License-Identifier: Apache-2.0
// One family of rows in kernels: functions of Val, and ops on elements of regions. Compiled once
// for each family, see cmake/Rows.cmake.
#include "codegen/region/element.h"
#include "ir/ops/elementwise/row_parts.h"

namespace forge::ir::rows {
#include FORGE_FAMILY_ROWS
}  // namespace forge::ir::rows

namespace forge::codegen {

#define FORGE_UNARY(T, name) \
  Val name(Val x) { return ir::rows::CallRow<ir::T>(x); }
#define FORGE_BINARY(T, name) \
  Val name(Val x, Val y) { return ir::rows::CallRow<ir::T>(x, y); }
#include FORGE_FAMILY_LIST

#define FORGE_ROW(T, ...)                                       \
  Element ElementOf(const ir::T* op, const Element* x) {        \
    return ir::rows::ApplyRowTo(ir::rows::RowAt<ir::T>(op), x); \
  }
#include FORGE_FAMILY_LIST

}  // namespace forge::codegen
