// SPDX-License-Identifier: Apache-2.0
// A device with one wrong kernel, to test that tools find it.
#pragma once
#include <string>

#include "runtime/device/device.h"

namespace forge {

// Wraps `device` so that after each step with this label the first bytes of its first result are
// overwritten with garbage (whole elements near 3,156 in f32 and bf16, 5.3 in f16; at most 4 KiB).
// Everything else, clocks included, is unchanged.
//   label: the complete Step::label      errors: those of Allocate
absl::StatusOr<DeviceRef> WithFault(DeviceRef device, std::string label);

// Applies WithFault where FORGE_FAULT=BACKEND/LABEL names the backend of `device`; otherwise
// returns `device`. docs/tools/forge-run.md describes the use.
//   errors: InvalidArgument (a malformed value), those of WithFault
absl::StatusOr<DeviceRef> WithFaultFromEnvironment(DeviceRef device);

}  // namespace forge
