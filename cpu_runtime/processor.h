// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/device/device.h"

namespace forge::cpu {

// "cpu:0": the processor's own name, the instruction set in use, threads and memory.
DeviceInfo ProcessorInfo();

}  // namespace forge::cpu
