// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace forge {

// A text table with aligned columns, two spaces apart. Numbers are right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> header);  // empty: no header
  void Add(std::vector<std::string> row);
  //   indent: put before each line     header: formats the header line; null: unchanged
  std::string Text(std::string_view indent = "",
                   std::string (*header)(std::string_view) = nullptr) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first is the header
};

}  // namespace forge
