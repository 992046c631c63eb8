// SPDX-License-Identifier: Apache-2.0
// Searches for the fastest way in which a device can compile a node.
#pragma once
#include "runtime/device/device.h"

namespace forge {

struct AutotuneLimits {
  double seconds = 10;     // for all requests together; the choice being timed is finished
  size_t candidates = 32;  // for each request, the default among them
};

// What was found for one request.
struct Autotuned {
  std::string name, choice_before, choice;  // as Device::Choices
  double seconds_before = 0, seconds = 0;   // of one run
  int tried = 0;                            // the default among them
  int wrong = 0;                            // computed something else than the default
};

// Times the choices of each request in turn, those that are estimated to take longest first, on
// made-up operands, and has the device prefer the fastest one whose results agree with the
// default's. One that fails to compile or run is passed over. Requests without a choice are left
// out of the result.
//   errors: of a default that does not run
absl::StatusOr<std::vector<Autotuned>> Autotune(
    const DeviceRef& device, std::span<const CompileRequest> requests, const AutotuneLimits& limits,
    absl::FunctionRef<void(size_t done, size_t total)> progress);

}  // namespace forge
