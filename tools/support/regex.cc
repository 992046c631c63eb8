// SPDX-License-Identifier: Apache-2.0
#include "tools/support/regex.h"

#include <regex>

namespace forge::tools {

struct Regex::Compiled {
  std::regex regex;
};

absl::StatusOr<Regex> Regex::Parse(const std::string& text) {
  try {
    return Regex(std::make_shared<const Compiled>(Compiled{std::regex(text)}));
  } catch (const std::regex_error& e) {
    return InvalidArgument("'{}' is no regular expression: {}", text, e.what());
  }
}

bool Regex::Finds(const std::string& text) const {
  return std::regex_search(text, compiled_->regex);
}

}  // namespace forge::tools
