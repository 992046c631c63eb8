// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "runtime/plan/executable.h"

namespace forge::tools {

// Statistics of compiled kernels as reported by drivers, as a tab-separated table: device, subject
// (a model or a case of an op), step, kernel, statistic, value.
class CompilerStatistics {
 public:
  // Adds the statistics of an executable and returns their number.
  size_t Add(const Device& device, std::string_view what, const Executable& executable);
  // Prints a table with `show` and no path; writes the rows to a file where there is a path.
  absl::Status ShowOrWrite(bool show, const std::string& path) const;

 private:
  std::string rows_ = "device\twhat\tstep\tkernel\tstatistic\tvalue\n";
};

}  // namespace forge::tools
