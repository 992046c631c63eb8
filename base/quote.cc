// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/ascii.h"

namespace forge {
namespace {

bool IsLetter(char c) { return absl::ascii_isalpha(c) || c == '_'; }

}  // namespace

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out += '"';
}

bool IsWord(std::string_view name) {
  return !name.empty() && IsLetter(name[0]) && std::all_of(name.begin(), name.end(), [](char c) {
    return IsLetter(c) || absl::ascii_isdigit(c);
  });
}

std::string NameText(std::string_view name) {
  return IsWord(name) ? std::string(name) : Quoted(name);
}

}  // namespace forge
