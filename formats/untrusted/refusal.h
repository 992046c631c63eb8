// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/graph/module.h"

namespace forge::formats {

// What a function that is read from a file refuses is the file's fault: DataLoss.
inline absl::Status RefusalOf(const ir::Function& fn) {
  return fn.status().ok() ? absl::OkStatus() : DataLoss("{}", Message(fn.status()));
}

}  // namespace forge::formats
