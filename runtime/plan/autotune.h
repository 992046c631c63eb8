// SPDX-License-Identifier: Apache-2.0
// Autotuning: finds the fastest way in which a device can compile a node.
#pragma once
#include "runtime/device/device.h"

namespace forge {

// Limits of a search.
struct AutotuneLimits {
  double seconds = 10;     // for all requests together; a measurement in progress is finished
  size_t candidates = 32;  // for each request, including the default
};

// The result for one request.
struct Autotuned {
  std::string name, choice_before, choice;  // choices in words, see Device::Choices
  double seconds_before = 0, seconds = 0;   // time of one run
  int tried = 0;                            // number of choices timed, including the default
  int wrong = 0;  // number of choices whose results differ from those of the default
};

// Times the choices of each request on synthetic operands, the requests with the longest estimated
// time first, and makes the fastest choice whose results agree with those of the default the
// preferred one (Device::Prefer). A choice that fails to compile or run is skipped. Requests
// without alternatives are left out of the result.
//   errors: of a default that does not run
absl::StatusOr<std::vector<Autotuned>> Autotune(
    const DeviceRef& device, std::span<const CompileRequest> requests, const AutotuneLimits& limits,
    absl::FunctionRef<void(size_t done, size_t total)> progress);

}  // namespace forge
