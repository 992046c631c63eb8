// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <regex>

#include "base/status.h"
#include "ir/cases/case_inputs.h"

namespace forge::tools {

// The selection of op cases by --filter.
class CaseFilter {
 public:
  // Parses a regular expression (ECMAScript), which selects the cases whose text contains a match;
  // empty: every case.
  //   errors: InvalidArgument with the reason
  static absl::StatusOr<CaseFilter> Parse(const std::string& text) {
    try {
      return CaseFilter(std::regex(text));
    } catch (const std::regex_error& e) {
      return InvalidArgument("'{}' is no regular expression: {}", text, e.what());
    }
  }
  bool Takes(const ir::ConcreteCase& c) const { return std::regex_search(c.ToText(), regex_); }

 private:
  explicit CaseFilter(std::regex regex) : regex_(std::move(regex)) {}
  std::regex regex_;
};

}  // namespace forge::tools
