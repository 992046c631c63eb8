// SPDX-License-Identifier: Apache-2.0
// Programs that this one starts, for work that may end the process that does it.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "base/status.h"

namespace forge {

// What became of a program that was run.
struct Ended {
  std::string output;   // what it wrote to its standard output, at most 1 MiB of it
  std::string fault;    // "signal 11 (Segmentation fault)"; empty: it ended with status 0
  bool silent = false;  // the fault is that it wrote nothing for too long
};

// Runs a program to its end with this one's environment and error output, and no input. One that
// neither writes nor ends for `nanoseconds` is killed, which is a fault. Where this process was
// itself started through a loader named on its command line, so is the program.
//   errors: Unavailable: it cannot be started, with path and reason
absl::StatusOr<Ended> RunToEnd(const std::filesystem::path& program,
                               std::span<const std::string> arguments, int64_t nanoseconds);

}  // namespace forge
