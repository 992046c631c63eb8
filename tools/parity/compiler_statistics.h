// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "runtime/plan/executable.h"

namespace forge::tools {

// What drivers tell of the kernels that they compiled, as a table of tab-separated columns: device,
// what was compiled (a model or a case of an op), step, kernel, statistic, value.
class CompilerStatistics {
 public:
  // Returns how many statistics there were.
  size_t Add(const Device& device, std::string_view what, const Executable& executable);
  // A table on the terminal with `show` and no path; the rows in a file where there is a path.
  absl::Status ShowOrWrite(bool show, const std::string& path) const;

 private:
  std::string rows_ = "device\twhat\tstep\tkernel\tstatistic\tvalue\n";
};

}  // namespace forge::tools
