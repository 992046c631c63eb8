// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/status.h"

namespace forge::tools {

// Runs (or only compiles) every case of every op on each device against the reference and prints a
// table by op.
//   errors: Internal when a case differs or fails; those of opening a device
absl::Status RunOpParity(const std::vector<std::string>& devices, bool compile_only, bool json);

}  // namespace forge::tools
