// SPDX-License-Identifier: Apache-2.0
// Dims compiled for repeated evaluation.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "ir/dim/dim.h"
#include "ir/dim/interval.h"

namespace forge::ir {

// Applies an operator to numbers. Sums and products wrap; quotients and remainders by non-positive
// divisors are 0.
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

// A compiled Dim over numbered variables. Arithmetic wraps; users of an index check its range.
class IndexProgram {
 public:
  // errors: InvalidArgument (`d` has a symbol that is not in `variables`)
  static absl::StatusOr<IndexProgram> Compile(const Dim& d, std::span<const SymbolRef> variables);
  int64_t Run(std::span<const int64_t> variables) const;

 private:
  struct Step {
    Dim::Op op;
    int64_t value;  // a constant, the index of a variable, or the number of operands
  };
  absl::Status Append(const Dim& d, std::span<const SymbolRef> variables, int depth);

  std::vector<Step> steps_;  // postfix
};

}  // namespace forge::ir
