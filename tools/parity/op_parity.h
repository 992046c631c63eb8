// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "tools/support/tool.h"

namespace forge::tools {

struct OpParityOptions {
  std::vector<std::string> devices;
  std::string filter;  // a regular expression on the cases' texts; empty: all
  bool compile_only = false;
  bool show_statistics = false;  // with compile_only: what the drivers tell
  std::string statistics;        // a file for it; empty: the terminal
  std::string dump;              // with compile_only: a folder for kernels, by device and case
  int choices = 0;  // with compile_only: ways to compile each case; 0: the default alone
};

// Runs (or only compiles) every case of every op on each device against the reference and prints a
// table by op, without ops of which no case was asked for.
//   errors: Internal when a case differs or fails; InvalidArgument when the filter takes none;
//   those of opening a device
absl::Status RunOpParity(const OpParityOptions& options, Tool& tool);

}  // namespace forge::tools
