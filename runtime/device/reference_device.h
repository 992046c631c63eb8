// SPDX-License-Identifier: Apache-2.0
// The reference backend: evaluates every op with its own f64 evaluator. Other devices are compared
// with it.
#pragma once
#include "runtime/device/device.h"

namespace forge {

// The driver of the reference backend; never null.
Driver* ReferenceDriver();

}  // namespace forge
