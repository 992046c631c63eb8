// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace forge {

// Text in columns that line up, two spaces apart. Numbers are put to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header);  // may be empty: then there is none
  void Add(std::vector<std::string> row);
  //   indent: before each line     header: what makes the header stand out; null: nothing
  std::string Text(std::string_view indent = "",
                   std::string (*header)(std::string_view) = nullptr) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first is the header
};

}  // namespace forge
