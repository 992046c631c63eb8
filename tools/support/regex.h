// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "base/status.h"

namespace forge::tools {

// A regular expression (ECMAScript) of the command line. (<regex> is used in regex.cc only: each
// source that uses it takes seconds longer to compile.)
class Regex {
 public:
  //   errors: InvalidArgument with the text and the reason
  static absl::StatusOr<Regex> Parse(const std::string& text);
  // Whether a part of `text` matches.
  bool Finds(const std::string& text) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace forge::tools
