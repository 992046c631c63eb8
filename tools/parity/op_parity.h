// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "tools/support/tool.h"

namespace forge::tools {

struct OpParityOptions {
  std::vector<std::string> devices;
  std::string filter;  // a regular expression on the text of cases; empty: all
  bool compile_only = false;
  bool show_statistics = false;  // with compile_only: report the statistics of the drivers
  std::string statistics;        // a file for them; empty: the terminal
  std::string dump;              // with compile_only: a folder for kernels, by device and case
  int choices = 0;  // with compile_only: choices compiled for each case; 0: the default only
};

// Runs (or only compiles) all cases of all ops on each device, compares them with the reference and
// prints a table by op. Ops without a selected case are omitted.
//   errors: Internal (a case differs or fails), InvalidArgument (the filter selects no case), those
//   of opening a device
absl::Status RunOpParity(const OpParityOptions& options, Tool& tool);

}  // namespace forge::tools
