// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <regex>

#include "base/status.h"

namespace forge::tools {

// Parses a regular expression (ECMAScript) of the command line.
//   errors: InvalidArgument with the text and the reason
inline absl::StatusOr<std::regex> ParseRegex(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& e) {
    return InvalidArgument("'{}' is no regular expression: {}", text, e.what());
  }
}

}  // namespace forge::tools
