// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/tape/scalar_loops.h"

namespace forge::cpu {
namespace {

constexpr ScalarLoop (*kRows[])(DType domain) = {
#define FORGE_ROW(T, ...) \
  [](DType domain) { return ScalarLoopOf(static_cast<const ir::T*>(nullptr), domain); },
#include "ir/ops/elementwise/row_list.inc"
};

}  // namespace

ScalarLoop FindScalarLoop(const ir::ScalarDef& def, DType domain) {
  return kRows[static_cast<size_t>(def.index)](domain);
}

}  // namespace forge::cpu
