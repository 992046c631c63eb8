// SPDX-License-Identifier: Apache-2.0
// Dimensions: integer expressions over symbols, immutable and compared by content.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace forge::ir {

// When an integer becomes known. A sum is known when its latest part is; this alone decides whether
// a kernel sees a literal, a scalar written when the plan is recorded, or a slot read at each
// replay.
enum class When : uint8_t { kBuild, kBind, kStep };

struct Symbol {
  std::string name;
  int64_t min = 0, max = INT64_MAX, divisor = 1;  // inclusive bounds; every value is a multiple
  When when = When::kBind;
};
using SymbolRef = std::shared_ptr<const Symbol>;  // identity is the pointer
using Bindings = std::map<SymbolRef, int64_t>;

// An integer expression over symbols: constants, symbols, sums, products, floordiv, mod, min, max.
// Kept as a canonical polynomial over atoms, so that equal expressions are usually found equal. The
// same class describes extents, index maps, buffer offsets, trip counts, grids and costs. Operators
// simplify by proven bounds: floordiv(4 * a + b, 4) is a when 0 <= b < 4. A constant result that
// overflows 64 bits becomes an expression whose Evaluate() reports the overflow.
class Dim {
 public:
  Dim(int64_t c = 0) : c_(c) {}  // NOLINT: a literal is a dimension
  explicit Dim(SymbolRef symbol);
  bool is_constant() const { return expr_ == nullptr; }
  int64_t constant() const;  // FORGE_CHECKs is_constant()
  int64_t min() const;       // proven bounds, saturated to int64
  int64_t max() const;
  int64_t divisor() const;  // a proven divisor of every value, at least 1
  When when() const;
  void CollectSymbols(std::vector<SymbolRef>& out) const;  // each once, in order of appearance
  // errors: OutOfRange (overflow, division by zero), InvalidArgument (unbound symbol, named)
  absl::StatusOr<int64_t> Evaluate(const Bindings& values) const;
  Dim Bind(const Bindings& values) const;  // replaces what is bound, simplifies
  Dim Substitute(const std::map<SymbolRef, Dim>& by) const;
  std::string ToText() const;  // "2*n + floordiv(h, 2)"
  uint64_t Hash() const;

  // What an expression is made of, for code generators: either a constant, a symbol, or an operator
  // with operands. Walk(v) calls back bottom-up in a fixed order.
  enum class Op : uint8_t { kConstant, kSymbol, kAdd, kMul, kFloorDiv, kMod, kMin, kMax };
  struct Part {
    Op op;
    int64_t constant;
    SymbolRef symbol;
    std::vector<Dim> operands;
  };
  Part part() const;

  friend Dim operator+(const Dim&, const Dim&);
  friend Dim operator-(const Dim&, const Dim&);
  friend Dim operator*(const Dim&, const Dim&);
  friend Dim FloorDiv(const Dim&, const Dim&);  // divisors are positive
  friend Dim Mod(const Dim&, const Dim&);
  friend Dim Min(const Dim&, const Dim&);
  friend Dim Max(const Dim&, const Dim&);
  friend bool operator==(const Dim&, const Dim&);  // same canonical form

  struct Expr;

 private:
  explicit Dim(std::shared_ptr<const Expr> e);
  int64_t c_;
  std::shared_ptr<const Expr> expr_;
};
Dim FloorDiv(const Dim&, const Dim&);
Dim Mod(const Dim&, const Dim&);
Dim Min(const Dim&, const Dim&);
Dim Max(const Dim&, const Dim&);
inline Dim CeilDiv(const Dim& a, const Dim& b) { return FloorDiv(a + b - 1, b); }
// Two extents that must be equal. Constants are exact; unlike symbols are taken as equal, because
// binding infers every node again with numbers and refuses then.  errors: InvalidArgument
absl::StatusOr<Dim> Unify(const Dim&, const Dim&);
// The NumPy rule for one axis: equal, or either is 1. Exact for every binding that broadcasts;
// unlike symbols give their BroadcastExtent (ir/dim/broadcast.h).  errors: InvalidArgument
absl::StatusOr<Dim> Broadcast(const Dim&, const Dim&);

using Dims = std::vector<Dim>;
absl::StatusOr<Dims> BroadcastShapes(std::span<const Dims* const> shapes);
std::string ToText(const Dims& d);  // "[n, 3, 48]"
Dim Product(std::span<const Dim> d);
bool AllConstant(const Dims& d);
std::vector<int64_t> Constants(const Dims& d);  // FORGE_CHECKs AllConstant

}  // namespace forge::ir
