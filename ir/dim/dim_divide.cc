// SPDX-License-Identifier: Apache-2.0
// floordiv, mod, min and max, simplified by proven bounds and divisors.
#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/dim/dim_expr.h"

namespace forge::ir {
namespace {

// x = c * quotient + rest, coefficients of the rest smaller than c and its constant in 0..c-1.
struct Split {
  Dim quotient, rest;
};

Split SplitByConstant(const Dim& x, int64_t c) {
  Polynomial quotient, rest;
  quotient.AddConstant(FloorDivide(ConstantOf(x), c));
  rest.AddConstant(FloorModulo(ConstantOf(x), c));
  for (const Term& t : TermsOf(x)) {
    quotient.AddTerm(t.coefficient / c, t.factors);
    rest.AddTerm(t.coefficient % c, t.factors);
  }
  return {std::move(quotient).Finish(), std::move(rest).Finish()};
}

uint64_t DivisorOf(const Term& t) {
  uint64_t out = Magnitude(t.coefficient);
  for (const AtomRef& f : t.factors) {
    uint64_t product;
    if (!__builtin_mul_overflow(out, f->facts.divisor, &product)) out = product;
  }
  return out;
}

// The terms of x that c divides whatever the symbols, and the others with the constant.
Split SplitByDivisor(const Dim& x, int64_t c) {
  Polynomial exact, rest;
  rest.AddConstant(ConstantOf(x));
  for (const Term& t : TermsOf(x)) {
    const bool divides = DivisorOf(t) % static_cast<uint64_t>(c) == 0;
    (divides ? exact : rest).AddTerm(t.coefficient, t.factors);
  }
  return {std::move(exact).Finish(), std::move(rest).Finish()};
}

// The greatest common divisor of c and all coefficients.
int64_t CommonFactor(const Dim& x, int64_t c) {
  for (const Term& t : TermsOf(x)) c = std::gcd(c, t.coefficient);
  return c;
}

// x without its constant, divided by g, which divides all coefficients, plus floor(constant / g).
Dim Shrink(const Dim& x, int64_t g) {
  Polynomial out;
  out.AddConstant(FloorDivide(ConstantOf(x), g));
  for (const Term& t : TermsOf(x)) out.AddTerm(t.coefficient / g, t.factors);
  return std::move(out).Finish();
}

// floor(x / c), when the bounds of x allow one value only.
bool OneQuotient(const Dim& x, int64_t c, int64_t& q) {
  const Interval r = FactsOf(x).range;
  if (r.low == INT64_MIN || r.high == INT64_MAX) return false;
  q = FloorDivide(r.low, c);
  return q == FloorDivide(r.high, c);
}

// x = blocks + rest, where some g divides c and all of `blocks`, and 0 <= rest < g: what c does to
// x it does to `blocks`.
std::optional<Split> SplitBlocks(const Dim& x, int64_t c) {
  std::vector<int64_t> tried{1};
  for (const Term& t : TermsOf(x)) {
    const int64_t g = std::gcd(t.coefficient, c);
    if (std::find(tried.begin(), tried.end(), g) != tried.end()) continue;
    tried.push_back(g);
    Polynomial blocks, rest;
    rest.AddConstant(FloorModulo(ConstantOf(x), g));
    blocks.AddConstant(ConstantOf(x) - FloorModulo(ConstantOf(x), g));
    for (const Term& u : TermsOf(x))
      (u.coefficient % g == 0 ? blocks : rest).AddTerm(u.coefficient, u.factors);
    Split s{std::move(blocks).Finish(), std::move(rest).Finish()};
    if (int64_t q; s.rest != 0 && OneQuotient(s.rest, g, q) && q == 0) return s;
  }
  return std::nullopt;
}

// floordiv(x, c) for an x that SplitByConstant has reduced.
Dim DivideRest(const Dim& x, int64_t c) {
  int64_t q;
  if (OneQuotient(x, c, q)) return q;
  if (const int64_t g = CommonFactor(x, c); g > 1) return FloorDiv(Shrink(x, g), c / g);
  if (Split s = SplitByDivisor(x, c);
      !TermsOf(s.quotient).empty() && OneQuotient(s.rest, c, q) && s.rest != 0)
    return FloorDiv(s.quotient, c) + q;
  if (const auto s = SplitBlocks(x, c)) return FloorDiv(s->quotient, c);
  const auto terms = TermsOf(x);
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].factors.size() != 1)
    return MakeAtom(Dim::Op::kFloorDiv, x, c);
  const Atom& atom = *terms[0].factors[0];
  const int64_t inner = atom.b.is_constant() ? atom.b.constant() : 0;
  if (int64_t outer, shift; atom.op == Dim::Op::kFloorDiv && inner > 0 &&
                            !__builtin_mul_overflow(inner, c, &outer) &&
                            !__builtin_mul_overflow(inner, ConstantOf(x), &shift))
    return FloorDiv(atom.a + shift, outer);
  if (atom.op == Dim::Op::kMod && inner > 0 && inner % c == 0 && ConstantOf(x) == 0)
    return Mod(FloorDiv(atom.a, c), inner / c);
  return MakeAtom(Dim::Op::kFloorDiv, x, c);
}

// mod(mod(y, m), c) is mod(y, c) where c divides m; terms that c divides vanish.
Dim DropMultiples(const Dim& x, int64_t c) {
  Polynomial out;
  out.AddConstant(FloorModulo(ConstantOf(x), c));
  for (const Term& t : TermsOf(x)) {
    if (DivisorOf(t) % static_cast<uint64_t>(c) == 0) continue;
    const Atom& atom = *t.factors[0];
    const bool mod = t.factors.size() == 1 && atom.op == Dim::Op::kMod && atom.b.is_constant();
    int64_t period;
    if (mod && !__builtin_mul_overflow(t.coefficient, atom.b.constant(), &period) &&
        period % c == 0) {
      out.AddScaled(atom.a, t.coefficient);
    } else {
      out.AddTerm(t.coefficient, t.factors);
    }
  }
  return out.overflowed() ? x : std::move(out).Finish();
}

Dim ModByConstant(Dim x, int64_t c) {
  // A mod that vanishes may uncover another below it; each round makes the expression smaller.
  for (Dim before; before != x;) {
    before = x;
    x = SplitByConstant(DropMultiples(x, c), c).rest;
  }
  if (int64_t q; OneQuotient(x, c, q)) return x - Dim(q) * c;
  if (const int64_t g = CommonFactor(x, c); g > 1)
    return Mod(Shrink(x, g), c / g) * g + FloorModulo(ConstantOf(x), g);
  if (const auto s = SplitBlocks(x, c)) return Mod(s->quotient, c) + s->rest;
  return MakeAtom(Dim::Op::kMod, x, c);
}

bool Contains(const Factors& f, const Atom& atom) {
  return std::any_of(f.begin(), f.end(), [&](const AtomRef& g) { return Compare(*g, atom) == 0; });
}

// Removes `part` from `whole`, atom by atom; false when it is not inside.
bool Remove(Factors& whole, const Factors& part) {
  for (const AtomRef& atom : part) {
    auto at = std::find_if(whole.begin(), whole.end(),
                           [&](const AtomRef& f) { return Compare(*f, *atom) == 0; });
    if (at == whole.end()) return false;
    whole.erase(at);
  }
  return true;
}

// x = by * quotient + rest, where `by` is one term.
Split SplitByTerm(const Dim& x, const Term& by) {
  Polynomial quotient, rest;
  rest.AddConstant(ConstantOf(x));
  for (const Term& t : TermsOf(x)) {
    Factors left = t.factors;
    if (t.coefficient % by.coefficient != 0 || !Remove(left, by.factors)) {
      rest.AddTerm(t.coefficient, t.factors);
    } else if (left.empty()) {
      quotient.AddConstant(t.coefficient / by.coefficient);
    } else {
      quotient.AddTerm(t.coefficient / by.coefficient, std::move(left));
    }
  }
  return {std::move(quotient).Finish(), std::move(rest).Finish()};
}

// An atom that is a factor of every term of x and of `by`; null when there is none.
AtomRef SharedFactor(const Dim& x, const Term& by) {
  if (ConstantOf(x) != 0) return nullptr;
  for (const AtomRef& atom : by.factors) {
    const auto terms = TermsOf(x);
    if (atom->facts.range.low < 0) continue;  // it may not change the divisor's sign
    if (std::all_of(terms.begin(), terms.end(),
                    [&](const Term& t) { return Contains(t.factors, *atom); }))
      return atom;
  }
  return nullptr;
}

Dim AtomDim(AtomRef atom) {
  Polynomial out;
  out.AddTerm(1, {std::move(atom)});
  return std::move(out).Finish();
}

Dim WithoutFactor(const Dim& x, const AtomRef& atom) {
  return SplitByTerm(x, Term{1, {atom}}).quotient;
}

bool ProvenBelow(const Dim& x, const Dim& y) {  // 0 <= x < y
  return x.min() >= 0 && (y - x).min() >= 1;
}

const Term* OnlyTerm(const Dim& d) {
  const auto terms = TermsOf(d);
  return terms.size() == 1 && ConstantOf(d) == 0 && terms[0].coefficient > 0 ? &terms[0] : nullptr;
}

}  // namespace

Dim FloorDiv(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    const int64_t c = b.constant();
    if (c < 1) return MakeAtom(Dim::Op::kFloorDiv, a, b);
    if (c == 1) return a;
    if (a.is_constant()) return FloorDivide(a.constant(), c);
    const Split s = SplitByConstant(a, c);
    return s.quotient + DivideRest(s.rest, c);
  }
  if (a == 0) return 0;
  if (a == b) return 1;
  if (ProvenBelow(a, b)) return 0;
  const Term* by = OnlyTerm(b);
  if (by == nullptr) return MakeAtom(Dim::Op::kFloorDiv, a, b);
  if (Split s = SplitByTerm(a, *by); s.quotient != 0) return s.quotient + FloorDiv(s.rest, b);
  if (AtomRef shared = SharedFactor(a, *by))
    return FloorDiv(WithoutFactor(a, shared), WithoutFactor(b, shared));
  return MakeAtom(Dim::Op::kFloorDiv, a, b);
}

Dim Mod(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    const int64_t c = b.constant();
    if (c < 1) return MakeAtom(Dim::Op::kMod, a, b);
    if (c == 1) return 0;
    if (a.is_constant()) return FloorModulo(a.constant(), c);
    return ModByConstant(a, c);
  }
  if (a == 0 || a == b) return 0;
  if (ProvenBelow(a, b)) return a;
  const Term* by = OnlyTerm(b);
  if (by == nullptr) return MakeAtom(Dim::Op::kMod, a, b);
  if (Split s = SplitByTerm(a, *by); s.quotient != 0) return Mod(s.rest, b);
  if (AtomRef shared = SharedFactor(a, *by))
    return Mod(WithoutFactor(a, shared), WithoutFactor(b, shared)) * AtomDim(shared);
  return MakeAtom(Dim::Op::kMod, a, b);
}

Dim Min(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant(), b.constant());
  const Dim difference = a - b;
  if (difference.max() <= 0) return a;
  if (difference.min() >= 0) return b;
  return Compare(a, b) <= 0 ? MakeAtom(Dim::Op::kMin, a, b) : MakeAtom(Dim::Op::kMin, b, a);
}

Dim Max(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant(), b.constant());
  const Dim difference = a - b;
  if (difference.min() >= 0) return a;
  if (difference.max() <= 0) return b;
  return Compare(a, b) <= 0 ? MakeAtom(Dim::Op::kMax, a, b) : MakeAtom(Dim::Op::kMax, b, a);
}

}  // namespace forge::ir
