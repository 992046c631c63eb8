// SPDX-License-Identifier: Apache-2.0
// A device with one wrong kernel, to prove that tools find it.
#pragma once
#include <string>

#include "runtime/device/device.h"

namespace forge {

// `device`, except that after each step of this label the first bytes of its first result are
// garbage (whole elements near 3,156 in f32 and bf16, 5.3 in f16; at most 4 KiB). Everything else,
// clocks included, is as the device has it.
//   label: the whole of Step::label      errors: those of Allocate
absl::StatusOr<DeviceRef> WithFault(DeviceRef device, std::string label);

// WithFault where FORGE_FAULT=BACKEND/LABEL names the device's backend, else `device` itself. For
// tests of tools: docs/tools/forge-run.md tells how.
//   errors: InvalidArgument (a value of another form); those of WithFault
absl::StatusOr<DeviceRef> WithFaultFromEnvironment(DeviceRef device);

}  // namespace forge
