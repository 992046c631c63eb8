// SPDX-License-Identifier: Apache-2.0
// SequenceMap as Loop: the results are sequences that the loop carries.
#pragma once
#include <onnx/onnx_pb.h>

#include <vector>

#include "base/status.h"

namespace forge::formats {

// Returns nodes that compute the same as a SequenceMap, in order. Names of new values begin with
// that of the node's first result.
//   errors: DataLoss (the body does not fit)
absl::StatusOr<std::vector<onnx::NodeProto>> SequenceMapAsLoop(const onnx::NodeProto& map);

}  // namespace forge::formats
