// SPDX-License-Identifier: Apache-2.0
// Defines the products that are composites.
#include "ir/op/define.h"
#include "ir/ops/product/add_matmul.h"
#include "ir/ops/product/einsum.h"
#include "ir/ops/product/grouped_matmul.h"
#include "ir/ops/product/rotary_embedding.h"
#include "ir/ops/product/tensor_dot.h"

namespace forge::ir {

#define FORGE_OP(T) FORGE_DEFINE_OP(T)
#include "ir/ops/product/product_list.inc"
#undef FORGE_OP

}  // namespace forge::ir
