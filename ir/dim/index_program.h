// SPDX-License-Identifier: Apache-2.0
// Index expressions made ready to be computed millions of times.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "ir/dim/dim.h"
#include "ir/dim/interval.h"

namespace forge::ir {

// An operator on numbers. Sums and products wrap; a quotient by what is not positive is 0.
inline int64_t Combine(Dim::Op op, int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Dim::Op::kAdd:
      return static_cast<int64_t>(ua + ub);
    case Dim::Op::kMul:
      return static_cast<int64_t>(ua * ub);
    case Dim::Op::kFloorDiv:
      return b <= 0 ? 0 : FloorDivide(a, b);
    case Dim::Op::kMod:
      return b <= 0 ? 0 : FloorModulo(a, b);
    case Dim::Op::kMin:
      return std::min(a, b);
    case Dim::Op::kMax:
      return std::max(a, b);
    case Dim::Op::kConstant:
    case Dim::Op::kSymbol:
      break;
  }
  FORGE_CHECK(!"an operator");
  return 0;
}

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
