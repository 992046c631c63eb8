// SPDX-License-Identifier: Apache-2.0
#include "tools/parity/compiler_statistics.h"

#include <iostream>

#include "absl/strings/str_split.h"
#include "tools/page/line_diff.h"
#include "tools/support/document.h"
#include "tools/support/terminal.h"

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

absl::Status CompilerStatistics::ShowOrWrite(bool show, const std::string& path) const {
  if (!path.empty()) return WriteText(path, rows_);
  if (!show) return absl::OkStatus();
  const Lines rows = SplitLines(rows_);
  Table table(absl::StrSplit(rows[0], '\t'));
  for (size_t i = 1; i < rows.size(); ++i) table.Add(absl::StrSplit(rows[i], '\t'));
  std::cout << table.Text();
  return absl::OkStatus();
}

}  // namespace forge::tools
