// SPDX-License-Identifier: Apache-2.0
// The operators that the importer knows: one table, and the builders it names.
#pragma once
#include <span>
#include <string_view>

#include "formats/onnx/node.h"

namespace forge::formats {

inline constexpr int64_t kNewestOpset = 28, kNewestIrVersion = 14;
inline constexpr int kAnyNumber = INT32_MAX;

// Appends the ops of one node and returns their results. Trailing results may be missing; a node
// that reads a missing one is refused.
using OnnxBuilder = ir::Values (*)(OnnxNode& node);

struct OnnxOp {
  std::string_view domain, name;
  int since;                   // the first opset in which it means this
  int min_inputs, max_inputs;  // operands; the first min_inputs must be given
  OnnxBuilder build;
};

std::span<const OnnxOp> OnnxOps();
// The entry with the greatest `since` up to `opset`; null when there is none. The domain "ai.onnx"
// is the same as "".
const OnnxOp* FindOnnxOp(std::string_view domain, std::string_view name, int64_t opset);

}  // namespace forge::formats
