// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/graph/module.h"

namespace forge::formats {

// Returns the error of a function that was read from a file as DataLoss, because the file is at
// fault.
inline absl::Status RefusalOf(const ir::Function& fn) {
  return fn.status().ok() ? absl::OkStatus() : DataLoss("{}", Message(fn.status()));
}

}  // namespace forge::formats
