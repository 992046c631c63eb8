// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace forge::tools {

// "SYMBOL=N" arguments of --dim.  errors: InvalidArgument
absl::StatusOr<std::map<std::string, int64_t>> ParseDims(const std::vector<std::string>& dims);

}  // namespace forge::tools
