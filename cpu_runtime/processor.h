// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/device/device.h"

namespace forge::cpu {

// Describes the device "cpu:0": name of the processor, instruction set in use, threads and memory.
DeviceInfo ProcessorInfo();

}  // namespace forge::cpu
