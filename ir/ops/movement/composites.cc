// SPDX-License-Identifier: Apache-2.0
// Defines the movement ops that are composites, whole in their headers.
#include "ir/op/define.h"
#include "ir/ops/movement/blocks.h"
#include "ir/ops/movement/diagonal.h"
#include "ir/ops/movement/diff.h"
#include "ir/ops/movement/one_hot.h"
#include "ir/ops/movement/roll.h"
#include "ir/ops/movement/stop_gradient.h"
#include "ir/ops/movement/tile.h"

namespace forge::ir {

#define FORGE_OP(T) FORGE_DEFINE_OP(T)
#include "ir/ops/movement/movement_list.inc"
#undef FORGE_OP

}  // namespace forge::ir
