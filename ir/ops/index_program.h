// SPDX-License-Identifier: Apache-2.0
// Index expressions made ready to be computed millions of times.
#pragma once
#include <span>
#include <vector>

#include "ir/type.h"

namespace forge::ir {

// A Dim over variables that are numbered. Arithmetic wraps: what uses an index checks its range.
class IndexProgram {
 public:
  // errors: InvalidArgument when `d` holds a symbol that is no variable
  static absl::StatusOr<IndexProgram> Compile(const Dim& d, std::span<const SymbolRef> variables);
  int64_t Run(std::span<const int64_t> variables) const;

 private:
  struct Step {
    Dim::Op op;
    int64_t value;  // constants: itself; symbols: which variable; operators: how many operands
  };
  absl::Status Append(const Dim& d, std::span<const SymbolRef> variables, int depth);

  std::vector<Step> steps_;  // postfix
};

}  // namespace forge::ir
