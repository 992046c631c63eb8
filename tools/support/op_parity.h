// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/status.h"

namespace forge::tools {

struct OpParityOptions {
  std::vector<std::string> devices;
  std::string filter;  // a regular expression on the cases' texts; empty: all
  bool compile_only = false;
  std::string statistics;  // with compile_only: a file for what the drivers tell; empty: none
  std::string dump;        // with compile_only: a folder for kernels, by device and case
  int choices = 0;         // with compile_only: ways to compile each case; 0: the default alone
  bool json = false;
};

// Runs (or only compiles) every case of every op on each device against the reference and prints a
// table by op.
//   errors: Internal when a case differs or fails; those of opening a device
absl::Status RunOpParity(const OpParityOptions& options);

}  // namespace forge::tools
