// SPDX-License-Identifier: Apache-2.0
// The supported operators, with their builders; builders/families.h lists the tables.
#pragma once
#include <span>
#include <string_view>

#include "formats/onnx/node.h"

namespace forge::formats {

inline constexpr int64_t kNewestOpset = 28, kNewestIrVersion = 14;
inline constexpr int kAnyNumber = INT32_MAX;

// Builds the nodes of an operator and returns its results. Trailing results may be missing; then no
// node may read them.
using OnnxBuilder = ir::Values (*)(OnnxNode& node);

// One version of an operator.
struct OnnxOp {
  std::string_view domain, name;
  int since;                   // the first opset with this definition
  int min_inputs, max_inputs;  // operands; the first min_inputs must be given
  OnnxBuilder build;
};

// All operators, by domain, name and version. A version that only widens types has no entry of its
// own: the one before it serves, and the op refuses what it cannot compute.
std::span<const OnnxOp> OnnxOps();
// Returns the entry with the greatest `since` up to `opset`; null when there is none. The domains
// "ai.onnx" and "" are equal.
const OnnxOp* FindOnnxOp(std::string_view domain, std::string_view name, int64_t opset);

}  // namespace forge::formats
