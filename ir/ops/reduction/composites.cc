// SPDX-License-Identifier: Apache-2.0
// Defines the reductions that are whole in their headers.
#include "ir/op/define.h"
#include "ir/ops/reduction/all_any.h"
#include "ir/ops/reduction/log_softmax.h"
#include "ir/ops/reduction/log_sum_exp.h"
#include "ir/ops/reduction/variance.h"
#include "ir/ops/reduction/vector_norm.h"

namespace forge::ir {

#define FORGE_OP(T) FORGE_DEFINE_OP(T)
#include "ir/ops/reduction/reduction_list.inc"
#undef FORGE_OP

}  // namespace forge::ir
