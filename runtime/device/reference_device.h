// SPDX-License-Identifier: Apache-2.0
// The device that runs every op's own evaluator: slow, plain, and what the others are compared
// with.
#pragma once
#include "runtime/device/device.h"

namespace forge {

Driver* ReferenceDriver();

}  // namespace forge
