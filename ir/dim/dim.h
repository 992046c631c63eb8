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

// The stage at which an integer becomes known; for an expression, the latest stage of its symbols.
// It determines whether a kernel gets a literal, a scalar of the recorded plan, or a parameter that
// is read at each submission.
enum class When : uint8_t { kBuild, kBind, kStep };

struct Symbol {
  std::string name;
  int64_t min = 0, max = INT64_MAX,
          divisor = 1;  // inclusive bounds; values are multiples of `divisor`
  When when = When::kBind;
};
using SymbolRef = std::shared_ptr<const Symbol>;  // compared by address
using Bindings = std::map<SymbolRef, int64_t>;

// An integer expression over symbols: constants, symbols, sums, products, floordiv, mod, min, max.
// Used for extents, index maps, buffer offsets, trip counts, grids and costs. The representation is
// a canonical polynomial over atoms, so equal expressions usually compare equal. Operators simplify
// by proven bounds: floordiv(4 * a + b, 4) is a when 0 <= b < 4. A constant that overflows 64 bits
// becomes an expression whose Evaluate() reports the overflow.
class Dim {
 public:
  Dim(int64_t c = 0) : c_(c) {}  // NOLINT: a literal is a dimension
  explicit Dim(SymbolRef symbol);
  bool is_constant() const { return expr_ == nullptr; }
  int64_t constant() const;  // FORGE_CHECKs is_constant()
  int64_t min() const;       // proven bounds, saturated to int64
  int64_t max() const;
  int64_t divisor() const;  // a proven divisor of all values, at least 1
  When when() const;
  void CollectSymbols(std::vector<SymbolRef>& out) const;  // each once, in order of appearance
  // errors: OutOfRange (overflow, division by zero), InvalidArgument (unbound symbol, named)
  absl::StatusOr<int64_t> Evaluate(const Bindings& values) const;
  Dim Bind(const Bindings& values) const;  // replaces the bound symbols and simplifies
  Dim Substitute(const std::map<SymbolRef, Dim>& by) const;
  std::string ToText() const;  // "2*n + floordiv(h, 2)"
  uint64_t Hash() const;

  // The root of an expression, for code generators: a constant, a symbol, or an operator with its
  // operands.
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
// Returns the common value of two extents that must be equal. Different symbols are assumed to be
// equal; binding infers every node again with numbers and checks. errors: InvalidArgument
// (different constants)
absl::StatusOr<Dim> Unify(const Dim&, const Dim&);
// Broadcasts one axis by the NumPy rule: equal, or either is 1. The result is exact for every valid
// binding; different symbols give their BroadcastExtent (ir/dim/broadcast.h). errors:
// InvalidArgument
absl::StatusOr<Dim> Broadcast(const Dim&, const Dim&);

using Dims = std::vector<Dim>;
absl::StatusOr<Dims> BroadcastShapes(std::span<const Dims* const> shapes);
// Whether two shapes may be equal: of the same rank, with extents that Unify takes.
bool MayEqual(std::span<const Dim> a, std::span<const Dim> b);
std::string ToText(const Dims& d);  // "[n, 3, 48]"
Dim Product(std::span<const Dim> d);
bool AllConstant(const Dims& d);
std::vector<int64_t> Constants(const Dims& d);  // FORGE_CHECKs AllConstant

}  // namespace forge::ir
