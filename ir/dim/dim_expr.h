// SPDX-License-Identifier: Apache-2.0
// The representation of symbolic Dims. Private to dim*.cc.
#pragma once
#include "absl/container/inlined_vector.h"
#include "ir/dim/dim.h"
#include "ir/dim/interval.h"

namespace forge::ir {

// Limits that bound the work on expressions of a hostile file. A larger expression becomes one
// whose Evaluate() reports an overflow.
inline constexpr uint32_t kMaxDimSize = 1u << 16;  // nodes; shared ones are counted each time
inline constexpr uint32_t kMaxDimDepth = 256;      // nesting of operators
inline constexpr size_t kMaxDimProduct = 64;       // terms of an expanded product of sums

// Proven facts about the values of an expression, and its size.
struct DimFacts {
  Interval range;
  uint64_t divisor = 1;  // 0: all values are 0
  When when = When::kBuild;
  uint32_t size = 1, depth = 0;
  uint64_t hash = 0;
};

// A symbol, or an operator that a polynomial cannot express. kAdd and kMul occur only where folding
// would overflow or exceed a limit; their operands are unchanged.
struct Atom {
  Dim::Op op = {};
  SymbolRef symbol;
  Dim a, b;
  DimFacts facts;
};
using AtomRef = std::shared_ptr<const Atom>;
using Factors = absl::InlinedVector<AtomRef, 2>;

struct Term {
  int64_t coefficient;  // never 0
  Factors factors;      // sorted, never empty
};

// constant + sum of terms. There is at least one term; terms are sorted by their factors, which are
// distinct.
struct Dim::Expr {
  int64_t constant = 0;
  absl::InlinedVector<Term, 2> terms;
  DimFacts facts;

  static const Expr* Of(const Dim& d) { return d.expr_.get(); }
  static Dim Make(std::shared_ptr<const Expr> e) { return Dim(std::move(e)); }
};

DimFacts FactsOf(const Dim& d);
std::span<const Term> TermsOf(const Dim& d);  // empty for a constant
int64_t ConstantOf(const Dim& d);             // the constant part
// Returns the atom of an expression of the form 1 * atom; null otherwise.
const Atom* AsAtom(const Dim& d);
int Compare(const Dim& a, const Dim& b);  // a total order by structure
int Compare(const Atom& a, const Atom& b);

// Builds a canonical polynomial.
class Polynomial {
 public:
  void AddConstant(int64_t c);
  void AddTerm(int64_t coefficient, Factors factors);
  void AddScaled(const Dim& d, int64_t by);
  bool overflowed() const { return overflowed_; }
  void SetOverflowed() { overflowed_ = true; }
  bool empty() const { return terms_.empty(); }
  Dim Finish() &&;

 private:
  int64_t constant_ = 0;
  std::vector<Term> terms_;
  bool overflowed_ = false;
};

// Returns an operator without simplifying it.
Dim MakeAtom(Dim::Op op, const Dim& a, const Dim& b);
Dim Overflowing();  // Evaluate() reports an overflow

}  // namespace forge::ir
