// SPDX-License-Identifier: Apache-2.0
// Child processes, for work that may crash.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "base/status.h"

namespace forge {

// The outcome of a child process.
struct Ended {
  std::string output;   // its standard output, at most 1 MiB
  std::string fault;    // "signal 11 (Segmentation fault)"; empty: exit status 0
  bool silent = false;  // it was killed because it wrote nothing for too long
};

// Runs a program until it ends, with the environment and standard error of this process and no
// input. The program is killed after `nanoseconds` without output. If this process was started
// through an explicit dynamic loader, so is the program.
//   errors: Unavailable (cannot be started), with path and reason
absl::StatusOr<Ended> RunToEnd(const std::filesystem::path& program,
                               std::span<const std::string> arguments, int64_t nanoseconds);

}  // namespace forge
