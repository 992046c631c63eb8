// SPDX-License-Identifier: Apache-2.0
// Nodes that are built when a run has told what decides their types.
#pragma once
#include "ir/analysis/dim_values.h"
#include "ir/graph/module.h"
#include "ir/ops/control/deferred.h"

namespace forge {

// What building a deferred node came to.
struct DeferredResult {
  ir::Values values;           // empty: it could not be built
  std::vector<int64_t> reads;  // the operands whose elements were asked for in vain
  absl::Status status;         // why it could not be built
};

// Builds the ops of a node of a file in `fn`.
//   dims: values of dimensions in `fn`
//   errors: DataLoss (a node that is damaged); others are in DeferredResult::status
absl::StatusOr<DeferredResult> BuildDeferred(const ir::Deferred& node, ir::Function& fn,
                                             ir::ValueSpan in, ir::DimValues& dims);

}  // namespace forge
