// SPDX-License-Identifier: Apache-2.0
// Canonical polynomials: building, comparing, adding and multiplying them.
#include <algorithm>
#include <numeric>
#include <optional>

#include "base/hash.h"
#include "ir/dim/dim_expr.h"

namespace forge::ir {
namespace {

uint32_t SaturatingSize(uint64_t size) {
  return static_cast<uint32_t>(std::min<uint64_t>(size, kMaxDimSize + 1));
}

// What any operator inherits from an operand.
void Inherit(DimFacts& facts, const DimFacts& operand) {
  facts.when = std::max(facts.when, operand.when);
  facts.size = SaturatingSize(uint64_t{facts.size} + operand.size);
  facts.depth = std::max(facts.depth, operand.depth);
  facts.hash = HashMix(facts.hash, operand.hash);
}

Interval FloorDivRange(const Interval& a, const Interval& b) {
  if (b.high < 1) return {};
  const int64_t least = std::max<int64_t>(b.low, 1);
  return {a.low >= 0 ? a.low / b.high : FloorDivide(a.low, least),
          a.high >= 0 ? a.high / least : FloorDivide(a.high, b.high)};
}

Interval ModRange(const Interval& a, const Interval& b) {
  if (b.high < 1) return {};
  return {0, a.low >= 0 ? std::min(a.high, b.high - 1) : b.high - 1};
}

// Operands of atoms are evaluated to 64 bits, so their saturated bounds are exact.
void SetRangeAndDivisor(Atom& atom, const DimFacts& a, const DimFacts& b) {
  DimFacts& f = atom.facts;
  const uint64_t c = atom.b.is_constant() ? Magnitude(atom.b.constant()) : 0;
  switch (atom.op) {
    case Dim::Op::kFloorDiv:
      f.range = FloorDivRange(a.range, b.range);
      f.divisor = c > 0 && a.divisor % c == 0 ? a.divisor / c : 1;
      break;
    case Dim::Op::kMod:
      f.range = ModRange(a.range, b.range);
      f.divisor = std::gcd(a.divisor, b.divisor);
      break;
    case Dim::Op::kMin:
      f.range = {std::min(a.range.low, b.range.low), std::min(a.range.high, b.range.high)};
      f.divisor = std::gcd(a.divisor, b.divisor);
      break;
    case Dim::Op::kMax:
      f.range = {std::max(a.range.low, b.range.low), std::max(a.range.high, b.range.high)};
      f.divisor = std::gcd(a.divisor, b.divisor);
      break;
    case Dim::Op::kAdd:
      f.range = a.range + b.range;
      f.divisor = std::gcd(a.divisor, b.divisor);
      break;
    default:
      f.range = a.range * b.range;
      f.divisor = std::max(a.divisor, b.divisor);
      break;
  }
}

int CompareFactors(const Factors& a, const Factors& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;  // high degrees first
  for (size_t i = 0; i < a.size(); ++i)
    if (int order = Compare(*a[i], *b[i]); order != 0) return order;
  return 0;
}

Factors Multiply(const Factors& a, const Factors& b) {
  Factors out;
  out.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out),
             [](const AtomRef& x, const AtomRef& y) { return Compare(*x, *y) < 0; });
  return out;
}

// A term's bounds, and the greatest divisor that can be told.
DimFacts FactsOfTerm(const Term& t) {
  DimFacts out{.range = {t.coefficient, t.coefficient}, .divisor = Magnitude(t.coefficient)};
  out.hash = HashMix(0, static_cast<uint64_t>(t.coefficient));
  for (const AtomRef& atom : t.factors) {
    Inherit(out, atom->facts);
    out.range = out.range * atom->facts.range;
    uint64_t divisor;
    if (!__builtin_mul_overflow(out.divisor, atom->facts.divisor, &divisor)) out.divisor = divisor;
  }
  return out;
}

DimFacts FactsOfSum(int64_t constant, std::span<const Term> terms) {
  DimFacts out{.range = {constant, constant}, .divisor = Magnitude(constant)};
  out.hash = HashMix(terms.size(), static_cast<uint64_t>(constant));
  for (const Term& term : terms) {
    const DimFacts t = FactsOfTerm(term);
    Inherit(out, t);
    out.range = out.range + t.range;
    out.divisor = std::gcd(out.divisor, t.divisor);
  }
  return out;
}

// Is `q` floordiv(x, c)?  Knows x = floordiv(y, a), whose quotient is kept as floordiv(y, a * c).
bool IsQuotient(const Atom& q, const Dim& x, const Dim& c) {
  if (q.op != Dim::Op::kFloorDiv) return false;
  if (q.a == x && q.b == c) return true;
  const Atom* inner = AsAtom(x);
  return inner != nullptr && inner->op == Dim::Op::kFloorDiv && q.a == inner->a &&
         q.b == inner->b * c;
}

Factors Without(const Factors& f, size_t i) {
  Factors out = f;
  out.erase(out.begin() + static_cast<ptrdiff_t>(i));
  return out;
}

// Adds k * rest * x.
void AddProduct(const Dim& x, int64_t k, const Factors& rest, Polynomial& sum) {
  Polynomial scaled;
  scaled.AddScaled(x, k);
  if (scaled.overflowed()) return sum.SetOverflowed();
  const Dim product = std::move(scaled).Finish();
  const int64_t constant = ConstantOf(product);
  if (rest.empty()) sum.AddConstant(constant);
  if (!rest.empty()) sum.AddTerm(constant, rest);
  for (const Term& t : TermsOf(product)) sum.AddTerm(t.coefficient, Multiply(t.factors, rest));
}

// Is `other` k * c * rest * floordiv(x, c), the partner of k * rest * mod(x, c)?
bool IsPartner(const Term& other, const Atom& mod, int64_t k, const Factors& rest) {
  const auto modulus = TermsOf(mod.b);
  if (modulus.size() > 1 || (modulus.size() == 1 && ConstantOf(mod.b) != 0)) return false;
  const int64_t scale = modulus.empty() ? ConstantOf(mod.b) : modulus[0].coefficient;
  int64_t coefficient;
  if (__builtin_mul_overflow(k, scale, &coefficient) || other.coefficient != coefficient)
    return false;
  const Factors wanted = modulus.empty() ? rest : Multiply(rest, modulus[0].factors);
  for (size_t f = 0; f < other.factors.size(); ++f)
    if (IsQuotient(*other.factors[f], mod.a, mod.b) &&
        CompareFactors(Without(other.factors, f), wanted) == 0)
      return true;
  return false;
}

// c * d, where `other` is k * c * rest * mod(floordiv(x, c), d), and low mod(x, c) with a number c.
std::optional<Dim> ModulusOfHigher(const Term& other, const Atom& low, int64_t k,
                                   const Factors& rest) {
  const int64_t c = low.b.constant();
  int64_t coefficient;
  if (__builtin_mul_overflow(k, c, &coefficient) || other.coefficient != coefficient)
    return std::nullopt;
  for (size_t f = 0; f < other.factors.size(); ++f) {
    const Atom& high = *other.factors[f];
    int64_t all;
    if (high.op == Dim::Op::kMod && high.b.is_constant() && high.b.constant() >= 1 &&
        !__builtin_mul_overflow(c, high.b.constant(), &all) &&
        CompareFactors(Without(other.factors, f), rest) == 0 && high.a == FloorDiv(low.a, c))
      return all;
  }
  return std::nullopt;
}

// c * floordiv(x, c) + mod(x, c) is x, whatever multiplies both.
bool JoinQuotient(std::span<const Term> terms, size_t at, Polynomial& sum) {
  const Term& t = terms[at];
  for (size_t f = 0; f < t.factors.size(); ++f) {
    const Atom& mod = *t.factors[f];
    if (mod.op != Dim::Op::kMod) continue;
    const Factors rest = Without(t.factors, f);
    for (size_t j = 0; j < terms.size(); ++j) {
      if (j == at || !IsPartner(terms[j], mod, t.coefficient, rest)) continue;
      for (size_t i = 0; i < terms.size(); ++i)
        if (i != at && i != j) sum.AddTerm(terms[i].coefficient, terms[i].factors);
      AddProduct(mod.a, t.coefficient, rest, sum);
      return true;
    }
  }
  return false;
}

// c * mod(floordiv(x, c), d) + mod(x, c) is mod(x, c * d), whatever multiplies both: digits of a
// place in rows and columns, put together again.
bool JoinDigits(std::span<const Term> terms, size_t at, Polynomial& sum) {
  const Term& t = terms[at];
  for (size_t f = 0; f < t.factors.size(); ++f) {
    const Atom& low = *t.factors[f];
    if (low.op != Dim::Op::kMod || !low.b.is_constant() || low.b.constant() < 1) continue;
    const Factors rest = Without(t.factors, f);
    for (size_t j = 0; j < terms.size(); ++j) {
      const std::optional<Dim> modulus = ModulusOfHigher(terms[j], low, t.coefficient, rest);
      if (j == at || !modulus) continue;
      for (size_t i = 0; i < terms.size(); ++i)
        if (i != at && i != j) sum.AddTerm(terms[i].coefficient, terms[i].factors);
      AddProduct(Mod(low.a, *modulus), t.coefficient, rest, sum);
      return true;
    }
  }
  return false;
}

// c * floordiv(x, c) is x where c divides x.
bool DropExactQuotient(std::span<const Term> terms, size_t at, Polynomial& sum) {
  const Term& t = terms[at];
  for (size_t f = 0; f < t.factors.size(); ++f) {
    const Atom& q = *t.factors[f];
    if (q.op != Dim::Op::kFloorDiv || !q.b.is_constant() || q.b.constant() < 1) continue;
    const int64_t c = q.b.constant();
    if (t.coefficient % c != 0 || FactsOf(q.a).divisor % static_cast<uint64_t>(c) != 0) continue;
    for (size_t i = 0; i < terms.size(); ++i)
      if (i != at) sum.AddTerm(terms[i].coefficient, terms[i].factors);
    AddProduct(q.a, t.coefficient / c, Without(t.factors, f), sum);
    return true;
  }
  return false;
}

bool HasFactor(const std::vector<Term>& terms, Dim::Op op) {
  for (const Term& t : terms)
    for (const AtomRef& f : t.factors)
      if (f->op == op) return true;
  return false;
}

}  // namespace

DimFacts FactsOf(const Dim& d) {
  if (const auto* e = Dim::Expr::Of(d)) return e->facts;
  const int64_t c = d.constant();
  return {.range = {c, c}, .divisor = Magnitude(c), .hash = HashMix(1, static_cast<uint64_t>(c))};
}

std::span<const Term> TermsOf(const Dim& d) {
  const auto* e = Dim::Expr::Of(d);
  return e != nullptr ? std::span<const Term>(e->terms) : std::span<const Term>();
}

int64_t ConstantOf(const Dim& d) {
  const auto* e = Dim::Expr::Of(d);
  return e != nullptr ? e->constant : d.constant();
}

const Atom* AsAtom(const Dim& d) {
  const auto terms = TermsOf(d);
  if (terms.size() != 1 || ConstantOf(d) != 0) return nullptr;
  if (terms[0].coefficient != 1 || terms[0].factors.size() != 1) return nullptr;
  return terms[0].factors[0].get();
}

int Compare(const Atom& a, const Atom& b) {
  if (&a == &b) return 0;
  if (a.op != b.op) return a.op < b.op ? -1 : 1;
  if (a.op == Dim::Op::kSymbol) {
    if (a.symbol == b.symbol) return 0;
    if (int order = a.symbol->name.compare(b.symbol->name); order != 0) return order;
    return std::less<>()(a.symbol.get(), b.symbol.get()) ? -1 : 1;
  }
  const int order = Compare(a.a, b.a);
  return order != 0 ? order : Compare(a.b, b.b);
}

int Compare(const Dim& a, const Dim& b) {
  const auto *x = Dim::Expr::Of(a), *y = Dim::Expr::Of(b);
  if (x == y && x != nullptr) return 0;
  const auto p = TermsOf(a), q = TermsOf(b);
  if (p.size() != q.size()) return p.size() < q.size() ? -1 : 1;
  for (size_t i = 0; i < p.size(); ++i) {
    if (int order = CompareFactors(p[i].factors, q[i].factors); order != 0) return order;
    if (p[i].coefficient != q[i].coefficient) return p[i].coefficient < q[i].coefficient ? -1 : 1;
  }
  const int64_t c = ConstantOf(a), d = ConstantOf(b);
  return c < d ? -1 : c > d ? 1 : 0;
}

void Polynomial::AddConstant(int64_t c) {
  overflowed_ |= __builtin_add_overflow(constant_, c, &constant_);
}

void Polynomial::AddTerm(int64_t coefficient, Factors factors) {
  if (coefficient == 0) return;
  auto at = std::lower_bound(
      terms_.begin(), terms_.end(), factors,
      [](const Term& t, const Factors& f) { return CompareFactors(t.factors, f) < 0; });
  if (at == terms_.end() || CompareFactors(at->factors, factors) != 0) {
    terms_.insert(at, Term{coefficient, std::move(factors)});
    return;
  }
  overflowed_ |= __builtin_add_overflow(at->coefficient, coefficient, &at->coefficient);
  if (at->coefficient == 0) terms_.erase(at);
}

void Polynomial::AddScaled(const Dim& d, int64_t by) {
  int64_t product;
  overflowed_ |= __builtin_mul_overflow(ConstantOf(d), by, &product);
  AddConstant(product);
  for (const Term& t : TermsOf(d)) {
    overflowed_ |= __builtin_mul_overflow(t.coefficient, by, &product);
    AddTerm(product, t.factors);
  }
}

Dim Polynomial::Finish() && {
  FORGE_CHECK(!overflowed_);
  const bool divides = HasFactor(terms_, Dim::Op::kFloorDiv);
  const bool mod = HasFactor(terms_, Dim::Op::kMod);
  for (size_t i = 0; (divides || mod) && i < terms_.size(); ++i) {
    Polynomial simpler;
    simpler.AddConstant(constant_);
    if (!(divides && mod && JoinQuotient(terms_, i, simpler)) &&
        !(divides && DropExactQuotient(terms_, i, simpler)) &&
        !(mod && JoinDigits(terms_, i, simpler)))
      continue;
    if (!simpler.overflowed()) return std::move(simpler).Finish();
  }
  if (terms_.empty()) return constant_;
  auto e = std::make_shared<Dim::Expr>();
  e->constant = constant_;
  e->terms.assign(std::make_move_iterator(terms_.begin()), std::make_move_iterator(terms_.end()));
  e->facts = FactsOfSum(e->constant, e->terms);
  if (e->facts.size > kMaxDimSize || e->facts.depth > kMaxDimDepth) return Overflowing();
  return Dim::Expr::Make(std::move(e));
}

Dim MakeAtom(Dim::Op op, const Dim& a, const Dim& b) {
  auto atom =
      std::make_shared<Atom>(Atom{.op = op, .symbol = nullptr, .a = a, .b = b, .facts = {}});
  const DimFacts x = FactsOf(a), y = FactsOf(b);
  atom->facts.hash = HashMix(2, static_cast<uint64_t>(op));
  Inherit(atom->facts, x);
  Inherit(atom->facts, y);
  atom->facts.depth += 1;
  SetRangeAndDivisor(*atom, x, y);
  Polynomial out;
  out.AddTerm(1, {std::move(atom)});
  return std::move(out).Finish();
}

Dim Overflowing() { return MakeAtom(Dim::Op::kMul, INT64_MAX, INT64_MAX); }

Dim::Dim(std::shared_ptr<const Expr> e) : c_(0), expr_(std::move(e)) {}

Dim::Dim(SymbolRef symbol) : c_(0) {
  FORGE_CHECK(symbol != nullptr && symbol->divisor >= 1);
  auto atom = std::make_shared<Atom>();
  atom->op = Op::kSymbol;
  atom->facts = {.range = {symbol->min, symbol->max},
                 .divisor = static_cast<uint64_t>(symbol->divisor),
                 .when = symbol->when,
                 .hash = HashText(symbol->name, 3)};
  atom->symbol = std::move(symbol);
  Polynomial out;
  out.AddTerm(1, {std::move(atom)});
  *this = std::move(out).Finish();
}

int64_t Dim::constant() const {
  FORGE_CHECK(is_constant());
  return c_;
}
int64_t Dim::min() const { return expr_ ? expr_->facts.range.low : c_; }
int64_t Dim::max() const { return expr_ ? expr_->facts.range.high : c_; }
When Dim::when() const { return expr_ ? expr_->facts.when : When::kBuild; }
uint64_t Dim::Hash() const { return FactsOf(*this).hash; }

int64_t Dim::divisor() const {
  constexpr uint64_t kMost = uint64_t{1} << 62;  // of 0, and of INT64_MIN
  const uint64_t d = FactsOf(*this).divisor;
  return static_cast<int64_t>(d == 0 || d > INT64_MAX ? kMost : d);
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_constant() || b.is_constant()) return a.is_constant() && b.is_constant() && a.c_ == b.c_;
  if (a.expr_ == b.expr_) return true;
  return a.expr_->facts.hash == b.expr_->facts.hash && Compare(a, b) == 0;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (int64_t sum; a.is_constant() && b.is_constant() && !__builtin_add_overflow(a.c_, b.c_, &sum))
    return sum;
  if (a.is_constant() && a.c_ == 0) return b;
  if (b.is_constant() && b.c_ == 0) return a;
  Polynomial sum;
  sum.AddScaled(a, 1);
  sum.AddScaled(b, 1);
  if (sum.overflowed()) return MakeAtom(Dim::Op::kAdd, a, b);
  return std::move(sum).Finish();
}

Dim operator-(const Dim& a, const Dim& b) {
  if (int64_t difference;
      a.is_constant() && b.is_constant() && !__builtin_sub_overflow(a.c_, b.c_, &difference))
    return difference;
  if (b.is_constant() && b.c_ == 0) return a;
  Polynomial difference;
  difference.AddScaled(a, 1);
  difference.AddScaled(b, -1);
  if (!difference.overflowed()) return std::move(difference).Finish();
  return a + Dim(-1) * b;
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    int64_t product;
    if (!__builtin_mul_overflow(a.c_, b.c_, &product)) return product;
    return MakeAtom(Dim::Op::kMul, a, b);
  }
  Polynomial product;
  const bool small = (TermsOf(a).size() + 1) * (TermsOf(b).size() + 1) <= kMaxDimProduct;
  if (b.is_constant()) {
    product.AddScaled(a, b.c_);
  } else if (a.is_constant() || small) {
    product.AddScaled(b, ConstantOf(a));
    for (const Term& s : TermsOf(a)) {
      if (int64_t c; ConstantOf(b) != 0) {
        if (__builtin_mul_overflow(s.coefficient, ConstantOf(b), &c))
          return MakeAtom(Dim::Op::kMul, a, b);
        product.AddTerm(c, s.factors);
      }
      for (const Term& t : TermsOf(b)) {
        int64_t c;
        if (__builtin_mul_overflow(s.coefficient, t.coefficient, &c))
          return MakeAtom(Dim::Op::kMul, a, b);
        product.AddTerm(c, Multiply(s.factors, t.factors));
      }
    }
  } else {
    return MakeAtom(Dim::Op::kMul, a, b);
  }
  if (product.overflowed()) return MakeAtom(Dim::Op::kMul, a, b);
  return std::move(product).Finish();
}

}  // namespace forge::ir
