// SPDX-License-Identifier: Apache-2.0
// What the builder need not emit: rules from an instruction to an equal value. Floats keep every
// bit, NaN, infinity and the sign of zero included. Literals of commuting operations stand right.
#include <cmath>

#include "codegen/kernel/builder_state.h"
#include "codegen/kernel/literal.h"

namespace forge::codegen {
namespace {

// What rules ask for: the instruction, its first two operands x and y, their literals lx and ly,
// and what made x.
struct Facts {
  Builder& b;
  const Builder::State& s;
  const Inst& i;
  const Type& type;
  const std::span<const Val> args;
  const Code code = i.code;
  const bool floats = IsFloat(type.elem);
  const Val x = args[0], y = args[args.size() > 1 ? 1 : 0];
  const std::optional<uint64_t> lx = b.LiteralOf(x);
  const std::optional<uint64_t> ly = args.size() > 1 ? b.LiteralOf(y) : std::nullopt;
  const std::optional<Inst> dx = s.DefOf(x) ? std::optional(*s.DefOf(x)) : std::nullopt;

  // Operand n of what made x.
  Val Inner(int n) const { return {&b, b.kernel().ArgsOf(*dx)[n]}; }
  bool Made(Code by) const { return dx && dx->code == by; }
  bool Is(double v) const { return ly && *ly == ToBits(y.type().elem, v); }
  bool AllOnes() const { return ly && *ly == Masked(y.type().elem, ~uint64_t{0}); }
  // The literal right of the operation that made x.
  std::optional<uint64_t> InnerLiteral() const { return b.LiteralOf(Inner(1)); }
  Val Bits(uint64_t v) const { return b.Bits(type, Masked(type.elem, v)); }
};

Val Add(const Facts& f) {
  if (f.floats) return {};
  if (f.Is(0)) return f.x;
  if (f.ly && f.Made(Code::kAdd) && f.InnerLiteral())
    return f.b.Emit(Code::kAdd, f.type, {f.Inner(0), f.Bits(*f.InnerLiteral() + *f.ly)});
  if (f.Made(Code::kNeg)) return f.b.Emit(Code::kSub, f.type, {f.y, f.Inner(0)});
  return {};
}

Val Sub(const Facts& f) {
  if (f.Is(0)) return f.x;
  if (f.floats) return {};
  if (f.x.id == f.y.id) return f.Bits(0);
  if (f.ly) return f.b.Emit(Code::kAdd, f.type, {f.x, f.Bits(-*f.ly)});
  return {};
}

Val Mul(const Facts& f) {
  if (f.Is(1)) return f.x;
  if (f.floats) return f.Is(-1) ? f.b.Emit(Code::kNeg, f.type, {f.x}) : Val{};
  if (f.Is(0)) return f.y;
  if (f.AllOnes()) return f.b.Emit(Code::kNeg, f.type, {f.x});
  if (f.ly && f.Made(Code::kMul) && f.InnerLiteral())
    return f.b.Emit(Code::kMul, f.type, {f.Inner(0), f.Bits(*f.InnerLiteral() * *f.ly)});
  return {};
}

Val Div(const Facts& f) {
  if (f.Is(1)) return f.x;
  if (f.floats && f.ly) {  // the reciprocal of a power of two is exact
    int exponent = 0;
    const double d = FloatOf(f.type.elem, *f.ly);
    if (std::fabs(std::frexp(d, &exponent)) == 0.5 && std::abs(exponent) < 14)
      return f.b.Emit(Code::kMul, f.type, {f.x, f.b.Literal(f.type, 1 / d)});
    return {};
  }
  const int shift = Log2(f.ly);
  if (shift < 0 || (IsSigned(f.type.elem) && !(f.i.aux & kNonNegative))) return {};
  return f.b.Emit(Code::kShr, f.type, {f.x, f.Bits(shift)});
}

Val Rem(const Facts& f) {
  if (f.floats) return {};
  if (f.Is(1)) return f.Bits(0);
  if (Log2(f.ly) < 0 || (IsSigned(f.type.elem) && !(f.i.aux & kNonNegative))) return {};
  return f.b.Emit(Code::kAnd, f.type, {f.x, f.Bits(*f.ly - 1)});
}

Val MinMax(const Facts& f) {
  if (f.x.id == f.y.id) return f.x;
  const double neutral = f.code == Code::kMin ? INFINITY : -INFINITY;
  return f.Is(neutral) ? f.x : Val{};  // for integers: the type's own limit
}

Val Logic(const Facts& f) {
  const bool zero = f.Is(0), ones = f.AllOnes(), same = f.x.id == f.y.id;
  if (f.code == Code::kAnd) return zero ? f.y : ones || same ? f.x : Val{};
  if (f.code == Code::kOr) return ones ? f.y : zero || same ? f.x : Val{};
  if (same) return f.Bits(0);
  if (ones) return f.b.Emit(Code::kNot, f.type, {f.x});
  return zero ? f.x : Val{};
}

// Whether every value of `from` is one of `to`.
bool Lossless(DType from, DType to) {
  if (IsFloat(from)) return IsFloat(to) && BitWidth(to) > BitWidth(from);
  if (!IsInt(from) || !IsInt(to) || BitWidth(to) <= BitWidth(from)) return false;
  return IsSigned(to) || !IsSigned(from);
}

// The integer that lost nothing when it became `v`, if `v` is a conversion of one.
Val Narrow(const Facts& f, Val v) {
  const Inst* d = f.s.DefOf(v);
  if (d == nullptr || d->code != Code::kConvert) return {};
  const Val inner{&f.b, f.b.kernel().ArgsOf(*d)[0]};
  return IsInt(inner.type().elem) && Lossless(inner.type().elem, v.type().elem) ? inner : Val{};
}

// A comparison of a widened integer with a literal, or another: as wide as the integer was. Mesa
// 22.3 answers one of i64(x) with a literal wrongly (nir_opt_algebraic), and 64 bits are two
// instructions or more on GPUs.
Val CompareNarrow(const Facts& f) {
  const Val x = Narrow(f, f.x), y = Narrow(f, f.y);
  if (x.b && y.b && x.type() == y.type()) return f.b.Emit(f.code, f.type, {x, y});
  const Val narrow = x.b ? x : y;
  const std::optional<uint64_t> literal = x.b ? f.ly : f.lx;
  if (!narrow.b || !literal) return {};
  const DType wide = f.x.type().elem, t = narrow.type().elem;
  const Val same = f.b.Bits(narrow.type(), Masked(t, *literal));
  if (IntegerOf(wide, *literal) == IntegerOf(t, Masked(t, *literal)))
    return x.b ? f.b.Emit(f.code, f.type, {x, same}) : f.b.Emit(f.code, f.type, {same, y});
  const bool above = IsSigned(wide) ? static_cast<int64_t>(IntegerOf(wide, *literal)) > 0 : true;
  return f.Bits(f.code != Code::kEq && above == (x.b != nullptr));
}

Val Compare(const Facts& f) {
  if (IsFloat(f.x.type().elem)) return {};
  if (f.x.id == f.y.id) return f.Bits(f.code != Code::kLt);
  return CompareNarrow(f);
}

Val Select(const Facts& f) {
  const Val a = f.args[1], b = f.args[2];
  if (a.id == b.id) return a;
  if (f.lx) return *f.lx ? a : b;
  if (f.Made(Code::kNot)) return f.b.Emit(Code::kSelect, f.type, {f.Inner(0), b, a});
  if (f.type.elem != DType::kBool) return {};
  if (a.id == f.b.Bits(f.type, 1).id && b.id == f.b.Bits(f.type, 0).id) return f.x;
  if (a.id == f.b.Bits(f.type, 0).id && b.id == f.b.Bits(f.type, 1).id)
    return f.b.Emit(Code::kNot, f.type, {f.x});
  return {};
}

Val Convert(const Facts& f) {
  if (f.x.type() == f.type) return f.x;
  if (!f.Made(Code::kConvert)) return {};
  const Val inner = f.Inner(0);
  return inner.type() == f.type && Lossless(f.type.elem, f.x.type().elem) ? inner : Val{};
}

Val Bitcast(const Facts& f) {
  if (f.x.type() == f.type) return f.x;
  if (f.Made(Code::kBitcast)) return f.b.Emit(Code::kBitcast, f.type, {f.Inner(0)});
  return {};
}

Val Pack(const Facts& f) {
  if (f.type.lanes == 1) return f.x;
  bool same = true, in_order = f.args.size() == f.type.lanes && f.Made(Code::kExtract) &&
                               f.Inner(0).type() == f.type;
  for (size_t n = 0; n < f.args.size(); ++n) {
    const Inst* d = f.s.DefOf(f.args[n]);
    same &= f.args[n].id == f.x.id;
    in_order = in_order && d && d->code == Code::kExtract && d->aux == n &&
               f.b.kernel().ArgsOf(*d)[0] == f.Inner(0).id;
  }
  if (in_order) return f.Inner(0);
  return same && f.lx ? f.Bits(*f.lx) : Val{};
}

Val Extract(const Facts& f) {
  if (f.x.type().lanes == 1) return f.x;
  if (f.lx) return f.Bits(*f.lx);
  if (f.Made(Code::kPack)) return f.Inner(f.i.aux);
  if (!f.Made(Code::kInsert)) return {};
  return f.dx->aux == f.i.aux ? f.Inner(1) : f.b.Extract(f.Inner(0), f.i.aux);
}

Val Undo(const Facts& f) { return f.Made(f.code) ? f.Inner(0) : Val{}; }

Val ShiftByZero(const Facts& f) { return f.Is(0) ? f.x : Val{}; }
Val Abs(const Facts& f) { return f.floats || IsSigned(f.type.elem) ? Val{} : f.x; }

constexpr CodeTable<Val (*)(const Facts&)> kRules = {
    {Code::kAdd, Add},       {Code::kSub, Sub},         {Code::kMul, Mul},
    {Code::kDiv, Div},       {Code::kRem, Rem},         {Code::kMin, MinMax},
    {Code::kMax, MinMax},    {Code::kAnd, Logic},       {Code::kOr, Logic},
    {Code::kXor, Logic},     {Code::kShl, ShiftByZero}, {Code::kShr, ShiftByZero},
    {Code::kEq, Compare},    {Code::kLt, Compare},      {Code::kLe, Compare},
    {Code::kSelect, Select}, {Code::kConvert, Convert}, {Code::kBitcast, Bitcast},
    {Code::kNot, Undo},      {Code::kNeg, Undo},        {Code::kAbs, Abs},
    {Code::kPack, Pack},     {Code::kExtract, Extract},
};

bool Foldable(Code c) {
  return !IsOneOf(c, {Code::kPack, Code::kExtract, Code::kInsert, Code::kDot4});
}

}  // namespace

Val Builder::State::Simplify(const Inst& i, const Type& type, std::span<const Val> args) const {
  if (args.empty()) return {};
  absl::InlinedVector<uint64_t, 4> literals;
  for (Val a : args)
    if (const auto l = b.LiteralOf(a)) literals.push_back(*l);
  if (literals.size() == args.size() && Foldable(i.code)) {
    const Folding f{i.code, type.elem, args[0].type().elem};
    if (const auto bits = FoldLiterals(f, literals)) return b.Bits(type, *bits);
  }
  const auto rule = kRules[i.code];
  return rule != nullptr ? rule({b, *this, i, type, args}) : Val{};
}

}  // namespace forge::codegen
