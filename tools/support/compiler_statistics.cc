// SPDX-License-Identifier: Apache-2.0
#include "tools/support/compiler_statistics.h"

#include "base/platform.h"

namespace forge::tools {

size_t CompilerStatistics::Add(const Device& device, std::string_view what,
                               const Executable& executable) {
  const auto programs = executable.programs();
  const std::string& name = device.info().name;
  size_t count = 0;
  for (size_t step = 0; step < programs.size(); ++step) {
    for (const KernelStatistic& s : programs[step]->statistics()) {
      rows_ += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", name, what, step, s.kernel, s.name, s.value);
      ++count;
    }
  }
  return count;
}

absl::Status CompilerStatistics::Write(const std::string& path) const {
  return WriteFile(path, std::span(reinterpret_cast<const uint8_t*>(rows_.data()), rows_.size()));
}

}  // namespace forge::tools
