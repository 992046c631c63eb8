// SPDX-License-Identifier: Apache-2.0
// Defines the composites that are whole in their header.
#include "ir/op/define.h"
#include "ir/ops/complex/complex.h"
#include "ir/ops/creation/random_uniform.h"
#include "ir/ops/elementwise/glu.h"
#include "ir/ops/elementwise/prelu.h"
#include "ir/ops/fft/fft.h"
#include "ir/ops/fft/log_mel.h"
#include "ir/ops/indexing/embedding.h"
#include "ir/ops/indexing/histogram.h"
#include "ir/ops/indexing/index_writes.h"
#include "ir/ops/indexing/lookup.h"
#include "ir/ops/indexing/masked_fill.h"
#include "ir/ops/indexing/nonzero.h"
#include "ir/ops/indexing/scatter_reduce.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/norm/batch_norm_training.h"
#include "ir/ops/norm/group_norm.h"
#include "ir/ops/norm/instance_norm.h"
#include "ir/ops/norm/local_response_norm.h"
#include "ir/ops/norm/rms_norm.h"
#include "ir/ops/pooling/sum_pool.h"
#include "ir/ops/recurrent/gru.h"
#include "ir/ops/recurrent/lstm.h"
#include "ir/ops/recurrent/rnn.h"
#include "ir/ops/sampling/affine_grid.h"
#include "ir/ops/sampling/sample_token.h"
#include "ir/ops/sorting/arg_sort.h"
#include "ir/ops/sorting/kth_value.h"
#include "ir/ops/sorting/median.h"
#include "ir/ops/sorting/mode.h"
#include "ir/ops/sorting/quantile.h"

namespace forge::ir {

#define FORGE_OP(T) FORGE_DEFINE_OP(T)
#include "ir/ops/composite_list.inc"
#undef FORGE_OP

}  // namespace forge::ir
