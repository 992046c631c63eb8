// SPDX-License-Identifier: Apache-2.0
// Values of environment variables.
#pragma once
#include "base/status.h"

namespace forge {

// Whether a variable is 1; unset, empty and 0 are false.
//   errors: InvalidArgument naming the variable and its value
absl::StatusOr<bool> EnvironmentSwitch(const char* name);

}  // namespace forge
