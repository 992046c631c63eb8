// SPDX-License-Identifier: Apache-2.0
#include "base/table.h"

#include <algorithm>
#include <cctype>

namespace forge {
namespace {

// Columns a terminal takes for UTF-8 text of single-width characters.
size_t Width(std::string_view s) {
  return std::count_if(s.begin(), s.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

bool IsNumber(std::string_view s) {
  const size_t digits =
      std::count_if(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c); });
  return digits > 0 &&
         (std::isdigit(static_cast<unsigned char>(s[0])) || s[0] == '-' || s[0] == '.') &&
         s.find('[') == s.npos && s.find(':') == s.npos;
}

}  // namespace

Table::Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

void Table::Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

std::string Table::Text(std::string_view indent, std::string (*header)(std::string_view)) const {
  std::vector<size_t> width;
  std::vector<bool> right;
  for (size_t r = 0; r < rows_.size(); ++r) {
    width.resize(std::max(width.size(), rows_[r].size()), 0);
    right.resize(width.size(), true);
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      width[c] = std::max(width[c], Width(rows_[r][c]));
      if (r > 0 && !rows_[r][c].empty() && rows_[r][c] != "-")
        right[c] = right[c] && IsNumber(rows_[r][c]);
    }
  }
  std::string out;
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (rows_[r].empty()) continue;
    std::string line(indent);
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      const std::string pad(width[c] - Width(rows_[r][c]), ' ');
      line += (c ? "  " : "") + (right[c] ? pad + rows_[r][c] : rows_[r][c] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += (r == 0 && header != nullptr ? header(line) : line) + "\n";
  }
  return out;
}

}  // namespace forge
