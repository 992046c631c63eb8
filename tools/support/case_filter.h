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
  //   errors: as Regex::Parse
  static absl::StatusOr<CaseFilter> Parse(const std::string& text) {
    FORGE_ASSIGN_OR_RETURN(Regex regex, Regex::Parse(text));
    return CaseFilter(std::move(regex));
  }
  bool Takes(const ir::ConcreteCase& c) const { return regex_.Finds(c.ToText()); }

 private:
  explicit CaseFilter(Regex regex) : regex_(std::move(regex)) {}
  Regex regex_;
};

}  // namespace forge::tools
