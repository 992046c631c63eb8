// SPDX-License-Identifier: Apache-2.0
// The rows of the element-wise table in kernels: functions of Val, and ops on elements of regions.
#include "codegen/region/element.h"
#include "ir/ops/elementwise/row_parts.h"

namespace forge::ir::rows {
#include "ir/ops/elementwise/all_rows.inc"
}  // namespace forge::ir::rows

namespace forge::codegen {

#define FORGE_UNARY(T, name) \
  Val name(Val x) { return ir::rows::CallRow<ir::T>(x); }
#define FORGE_BINARY(T, name) \
  Val name(Val x, Val y) { return ir::rows::CallRow<ir::T>(x, y); }
#include "ir/ops/elementwise/row_list.inc"

#define FORGE_ROW(T, ...)                                       \
  Element ElementOf(const ir::T* op, const Element* x) {        \
    return ir::rows::ApplyRowTo(ir::rows::RowAt<ir::T>(op), x); \
  }
#include "ir/ops/elementwise/row_list.inc"

}  // namespace forge::codegen
