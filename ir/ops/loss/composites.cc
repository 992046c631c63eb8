// SPDX-License-Identifier: Apache-2.0
// Defines the losses, which are whole in their headers.
#include "ir/op/define.h"
#include "ir/ops/loss/binary.h"
#include "ir/ops/loss/classification.h"
#include "ir/ops/loss/ctc_loss.h"
#include "ir/ops/loss/distance.h"
#include "ir/ops/loss/distribution.h"
#include "ir/ops/loss/log_softmax_at.h"
#include "ir/ops/loss/margin.h"
#include "ir/ops/loss/regression.h"

namespace forge::ir {

#define FORGE_OP(T) FORGE_DEFINE_OP(T)
#include "ir/ops/loss/loss_list.inc"
#undef FORGE_OP

}  // namespace forge::ir
