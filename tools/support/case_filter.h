// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <regex>

#include "base/status.h"
#include "ir/cases/case_inputs.h"

namespace forge::tools {

// The cases of ops that a person asks for with --filter.
class CaseFilter {
 public:
  // A regular expression (ECMAScript) that is searched for in a case's text; empty: every case.
  //   errors: InvalidArgument with what is wrong about it
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
