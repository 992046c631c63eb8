// SPDX-License-Identifier: Apache-2.0
// Tables, progress and colour for a person at a terminal; plain lines for everyone else.
#pragma once
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/table.h"

namespace forge::tools {

// With its header in bold on a terminal.
class Table : public forge::Table {
 public:
  using forge::Table::Table;
  std::string Text(std::string_view indent = "") const;
};

// Shows work that takes long on stderr: a bar on a terminal, else a line now and then. From any
// thread.
class Progress {
 public:
  ~Progress();
  void operator()(std::string_view what, size_t done, size_t total);

 private:
  std::mutex mutex_;
  std::string what_;
  int64_t next_ = 0;  // when to speak again, as NowNanoseconds() counts
  bool drawn_ = false;
};

std::string Bytes(uint64_t n);  // "1.5 MiB"
// "1073741824", "512K", "300M", "2G": powers of 1024.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);
std::string Duration(double seconds);              // "12.3 ms"
std::string Bold(std::string_view s);              // only on a terminal, never with NO_COLOR
std::string Coloured(std::string_view diff_line);  // the same: by its first character

}  // namespace forge::tools
