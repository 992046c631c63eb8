// SPDX-License-Identifier: Apache-2.0
// Output for terminals: tables, progress and colour; plain lines elsewhere.
#pragma once
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/table.h"

namespace forge::tools {

// A table whose header is bold on a terminal.
class Table : public forge::Table {
 public:
  using forge::Table::Table;
  std::string Text(std::string_view indent = "") const;
};

// Shows the progress of long work on stderr: a bar on a terminal, otherwise occasional lines. May
// be called from any thread.
class Progress {
 public:
  ~Progress();
  // detail: changes while the work goes on, unlike `what`; shown after the counts
  void operator()(std::string_view what, size_t done, size_t total, std::string_view detail = {});

 private:
  std::mutex mutex_;
  std::string what_;
  int64_t next_ = 0;  // time of the next line, as NowNanoseconds()
  bool drawn_ = false;
};

std::string Bytes(uint64_t n);  // formats bytes: "1.5 MiB"
// Parses "1073741824", "512K", "300M", "2G": powers of 1024.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);
std::string Duration(double seconds);  // formats a duration: "12.3 ms"
std::string Bold(std::string_view s);  // on a terminal without NO_COLOR; otherwise unchanged
std::string Coloured(std::string_view diff_line);  // likewise, by the first character of the line

}  // namespace forge::tools
