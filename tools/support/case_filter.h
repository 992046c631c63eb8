// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cases/case_inputs.h"
#include "tools/support/regex.h"

namespace forge::tools {

// The selection of op cases by --filter.
class CaseFilter {
 public:
  // Parses a regular expression, which selects the cases whose text contains a match; empty: every
  // case.
  //   errors: as ParseRegex
  static absl::StatusOr<CaseFilter> Parse(const std::string& text) {
    FORGE_ASSIGN_OR_RETURN(std::regex regex, ParseRegex(text));
    return CaseFilter(std::move(regex));
  }
  bool Takes(const ir::ConcreteCase& c) const { return std::regex_search(c.ToText(), regex_); }

 private:
  explicit CaseFilter(std::regex regex) : regex_(std::move(regex)) {}
  std::regex regex_;
};

}  // namespace forge::tools
