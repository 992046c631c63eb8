// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <iterator>
#include <string>

namespace forge {

// Lists the names of rows for a message: "a, b or c".
template <class Rows, class Name>
std::string Alternatives(const Rows& rows, Name name) {
  std::string text;
  for (size_t i = 0; i < std::size(rows); ++i) {
    if (i > 0) text += i + 1 < std::size(rows) ? ", " : " or ";
    text += std::invoke(name, rows[i]);
  }
  return text;
}

}  // namespace forge
