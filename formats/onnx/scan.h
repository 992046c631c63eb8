// SPDX-License-Identifier: Apache-2.0
// Scan as Loop: rows are gathered in the body, and stacked by the loop.
#pragma once
#include <onnx/onnx_pb.h>

#include <vector>

#include "base/status.h"

namespace forge::formats {

// Returns nodes that compute the same as a Scan of opset 9 or later, in order. Names of new values
// begin with that of the node's first result.
//   errors: DataLoss (attributes that do not fit)
absl::StatusOr<std::vector<onnx::NodeProto>> ScanAsLoop(const onnx::NodeProto& scan);

// The same of a Scan of opset 8, whose operands have a batch first.
absl::StatusOr<std::vector<onnx::NodeProto>> BatchedScanAsLoop(const onnx::NodeProto& scan);

}  // namespace forge::formats
