// SPDX-License-Identifier: Apache-2.0
// Walks over expressions: evaluation, substitution, symbols, parts and text.
#include <algorithm>

#include "base/quote.h"
#include "ir/dim/dim_expr.h"

namespace forge::ir {
namespace {

using Wide = __int128;  // sums of products may pass through more than 64 bits

// A long expression makes a message unreadable.
std::string Brief(const Dim& d) {
  constexpr uint32_t kMaxParts = 64;
  return FactsOf(d).size > kMaxParts ? "a long expression" : d.ToText();
}

absl::StatusOr<int64_t> Narrow(Wide v, bool overflow, const Dim& d) {
  if (overflow || v < INT64_MIN || v > INT64_MAX)
    return OutOfRange("{} overflows 64 bits", Brief(d));
  return static_cast<int64_t>(v);
}

absl::StatusOr<int64_t> Apply(Dim::Op op, int64_t a, int64_t b, const Dim& whole) {
  switch (op) {
    case Dim::Op::kFloorDiv:
    case Dim::Op::kMod:
      if (b == 0) return OutOfRange("{} divides by zero", Brief(whole));
      if (b < 0) return OutOfRange("{} divides by {}, which is negative", Brief(whole), b);
      return op == Dim::Op::kMod ? FloorModulo(a, b) : FloorDivide(a, b);
    case Dim::Op::kMin:
      return std::min(a, b);
    case Dim::Op::kMax:
      return std::max(a, b);
    case Dim::Op::kAdd:
      return Narrow(Wide{a} + b, false, whole);
    default:
      return Narrow(Wide{a} * b, false, whole);
  }
}

absl::StatusOr<int64_t> EvaluateAtom(const Atom& atom, const Bindings& values, const Dim& whole) {
  if (atom.op != Dim::Op::kSymbol) {
    FORGE_ASSIGN_OR_RETURN(const int64_t a, atom.a.Evaluate(values));
    FORGE_ASSIGN_OR_RETURN(const int64_t b, atom.b.Evaluate(values));
    return Apply(atom.op, a, b, whole);
  }
  const auto at = values.find(atom.symbol);
  if (at == values.end()) return InvalidArgument("dimension {} is not bound", atom.symbol->name);
  return at->second;
}

using Replacements = std::map<SymbolRef, Dim>;

Dim SubstituteAtom(const AtomRef& atom, const Replacements& by) {
  if (atom->op == Dim::Op::kSymbol) {
    const auto at = by.find(atom->symbol);
    return at != by.end() ? at->second : Dim(atom->symbol);
  }
  const Dim a = atom->a.Substitute(by), b = atom->b.Substitute(by);
  switch (atom->op) {
    case Dim::Op::kFloorDiv:
      return FloorDiv(a, b);
    case Dim::Op::kMod:
      return Mod(a, b);
    case Dim::Op::kMin:
      return Min(a, b);
    case Dim::Op::kMax:
      return Max(a, b);
    case Dim::Op::kAdd:
      return a + b;
    default:
      return a * b;
  }
}

bool Mentions(const Dim& d, const Replacements& by) {
  for (const Term& t : TermsOf(d))
    for (const AtomRef& f : t.factors)
      if (f->op == Dim::Op::kSymbol ? by.contains(f->symbol)
                                    : Mentions(f->a, by) || Mentions(f->b, by))
        return true;
  return false;
}

// In parentheses unless it is one thing, so that it parses back as one operand.
std::string TextOfOperand(const Dim& d) {
  return d.is_constant() || AsAtom(d) != nullptr ? d.ToText() : "(" + d.ToText() + ")";
}

std::string TextOfAtom(const Atom& atom) {
  switch (atom.op) {
    case Dim::Op::kSymbol:
      return NameText(atom.symbol->name);
    case Dim::Op::kFloorDiv:
      return fmt::format("floordiv({}, {})", atom.a.ToText(), atom.b.ToText());
    case Dim::Op::kMod:
      return fmt::format("mod({}, {})", atom.a.ToText(), atom.b.ToText());
    case Dim::Op::kMin:
      return fmt::format("min({}, {})", atom.a.ToText(), atom.b.ToText());
    case Dim::Op::kMax:
      return fmt::format("max({}, {})", atom.a.ToText(), atom.b.ToText());
    case Dim::Op::kAdd:
      return fmt::format("({} + {})", TextOfOperand(atom.a), TextOfOperand(atom.b));
    default:
      return fmt::format("({}*{})", TextOfOperand(atom.a), TextOfOperand(atom.b));
  }
}

Dim DimOf(const AtomRef& atom) {
  Polynomial out;
  out.AddTerm(1, {atom});
  return std::move(out).Finish();
}

Dim::Part PartOf(Dim::Op op, std::vector<Dim> operands) {
  return {.op = op, .constant = 0, .symbol = nullptr, .operands = std::move(operands)};
}

}  // namespace

absl::StatusOr<int64_t> Dim::Evaluate(const Bindings& values) const {
  if (is_constant()) return c_;
  Wide sum = expr_->constant;
  bool overflow = false;
  for (const Term& t : expr_->terms) {
    Wide product = t.coefficient;
    for (const AtomRef& f : t.factors) {
      FORGE_ASSIGN_OR_RETURN(const int64_t v, EvaluateAtom(*f, values, *this));
      overflow |= __builtin_mul_overflow(product, Wide{v}, &product);
    }
    overflow |= __builtin_add_overflow(sum, product, &sum);
  }
  return Narrow(sum, overflow, *this);
}

Dim Dim::Substitute(const std::map<SymbolRef, Dim>& by) const {
  if (is_constant() || by.empty() || !Mentions(*this, by)) return *this;
  Dim sum = expr_->constant;
  for (const Term& t : expr_->terms) {
    Dim product = t.coefficient;
    for (const AtomRef& f : t.factors) product = product * SubstituteAtom(f, by);
    sum = sum + product;
  }
  return sum;
}

Dim Dim::Bind(const Bindings& values) const {
  if (is_constant() || values.empty()) return *this;
  return Substitute({values.begin(), values.end()});
}

void Dim::CollectSymbols(std::vector<SymbolRef>& out) const {
  for (const Term& t : TermsOf(*this)) {
    for (const AtomRef& f : t.factors) {
      if (f->op != Op::kSymbol) {
        f->a.CollectSymbols(out);
        f->b.CollectSymbols(out);
      } else if (std::find(out.begin(), out.end(), f->symbol) == out.end()) {
        out.push_back(f->symbol);
      }
    }
  }
}

std::string Dim::ToText() const {
  if (is_constant()) return std::to_string(c_);
  std::string out;
  for (const Term& t : expr_->terms) {
    const bool negative = t.coefficient < 0;
    out += out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    const uint64_t magnitude = Magnitude(t.coefficient);
    if (magnitude != 1) out += std::to_string(magnitude) + "*";
    for (size_t i = 0; i < t.factors.size(); ++i)
      out += (i > 0 ? "*" : "") + TextOfAtom(*t.factors[i]);
  }
  if (expr_->constant != 0)
    out += fmt::format(" {} {}", expr_->constant < 0 ? '-' : '+', Magnitude(expr_->constant));
  return out;
}

Dim::Part Dim::part() const {
  if (is_constant())
    return {.op = Op::kConstant, .constant = c_, .symbol = nullptr, .operands = {}};
  const auto& terms = expr_->terms;
  if (terms.size() > 1 || expr_->constant != 0) {
    std::vector<Dim> operands;
    for (const Term& t : terms) {
      Polynomial p;
      p.AddTerm(t.coefficient, t.factors);
      operands.push_back(std::move(p).Finish());
    }
    if (expr_->constant != 0) operands.emplace_back(expr_->constant);
    return PartOf(Op::kAdd, std::move(operands));
  }
  const Term& t = terms[0];
  if (t.coefficient != 1 || t.factors.size() > 1) {
    std::vector<Dim> operands;
    for (const AtomRef& f : t.factors) operands.push_back(DimOf(f));
    if (t.coefficient != 1) operands.emplace_back(t.coefficient);
    return PartOf(Op::kMul, std::move(operands));
  }
  const Atom& atom = *t.factors[0];
  if (atom.op == Op::kSymbol)
    return {.op = Op::kSymbol, .constant = 0, .symbol = atom.symbol, .operands = {}};
  return PartOf(atom.op, {atom.a, atom.b});
}

}  // namespace forge::ir
