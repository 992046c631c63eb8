// SPDX-License-Identifier: Apache-2.0
// Defines the composites that are whole in their header.
#include "ir/op/define.h"
#include "ir/ops/elementwise/glu.h"
#include "ir/ops/indexing/embedding.h"
#include "ir/ops/indexing/index_writes.h"
#include "ir/ops/indexing/masked_fill.h"
#include "ir/ops/indexing/scatter_reduce.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/norm/group_norm.h"
#include "ir/ops/norm/instance_norm.h"
#include "ir/ops/norm/rms_norm.h"
#include "ir/ops/pooling/sum_pool.h"
#include "ir/ops/sampling/affine_grid.h"

namespace forge::ir {

#define FORGE_OP(T) FORGE_DEFINE_OP(T)
#include "ir/ops/composite_list.inc"
#undef FORGE_OP

}  // namespace forge::ir
