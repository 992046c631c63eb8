// SPDX-License-Identifier: Apache-2.0
#include "ir/cases/bounds.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "base/narrow_float.h"
#include "base/number.h"
#include "ir/graph/interpreter.h"
#include "ir/op/elements.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {
namespace {

using Operands = std::span<const HostValue* const>;

// Bits of the significand and exponent of the least normal number.
struct Format {
  int digits, least;
};

Format FormatOf(DType t) {
  switch (t) {
    case DType::kF16:
      return {11, -14};
    case DType::kBF16:
      return {8, -126};
    case DType::kF8E4M3:
      return {4, -6};
    case DType::kF8E5M2:
      return {3, -14};
    case DType::kF8E4M3Fnuz:
      return {4, -7};
    case DType::kF8E5M2Fnuz:
      return {3, -15};
    case DType::kF4E2M1:
      return {2, 0};
    case DType::kF64:
      return {53, -1022};
    default:
      return {24, -126};
  }
}

// One unit of the last place of |v| in t.
double UnitOf(double v, DType t) {
  const Format f = FormatOf(t);
  if (!std::isfinite(v)) return 0;
  const int exponent = v == 0 ? f.least : std::max(std::ilogb(v), f.least);
  return std::ldexp(1.0, exponent - f.digits + 1);
}

// What narrow floats are computed in; of complex numbers the parts.
DType AccumulatorOf(DType t) {
  return t == DType::kF64 || t == DType::kC128 ? DType::kF64 : DType::kF32;
}

// Units of the modulus that an element-wise op may be off by on complex numbers beyond its bound on
// real ones: a product is two products and a sum, a quotient three times that.
constexpr double kComplexUlps = 6;

// What the bound of each element is made of.
struct Bound {
  double ulps = 0;           // units of the result's last place
  double absolute = 0;       // the same for every element
  double share = 0;          // times S: 4 u sqrt(K)
  std::vector<double> sums;  // S of each element, when share is not 0
  std::vector<double> own;   // of each element, or empty
  double At(size_t i, double reference, DType t) const {
    return ulps * UnitOf(reference, t) + absolute + (sums.empty() ? 0 : share * sums[i]) +
           (own.empty() ? 0 : own[i]);
  }
};

std::vector<double> Moduli(const HostValue& v) {
  std::vector<double> out;
  for (const std::complex<double>& z : Complexes(v)) out.push_back(std::abs(z));
  return out;
}

// The operands in f64, absolute unless the op weighs them itself; complex numbers by their moduli
// then.
std::vector<HostValue> Widened(Operands in, bool absolute) {
  std::vector<HostValue> out;
  for (const HostValue* v : in) {
    out.emplace_back(v ? *v : HostValue());
    if (!v || !Has(kFloatTypes | kComplexTypes, v->dtype())) continue;
    if (Has(kComplexTypes, v->dtype()) && !absolute) continue;
    std::vector<double> all = Has(kComplexTypes, v->dtype()) ? Moduli(*v) : Doubles(*v);
    if (absolute)
      for (double& x : all) x = std::fabs(x);
    auto wide = HostValue::Zeros(DType::kF64, v->shape());
    FORGE_CHECK(wide.ok());
    Store(all, *wide);
    out.back() = *std::move(wide);
  }
  return out;
}

absl::StatusOr<std::vector<double>> Sums(const AnyOp& op, Operands in, size_t index) {
  const std::vector<HostValue> wide = Widened(in, op.def().magnitude == nullptr);
  std::vector<const HostValue*> operands;
  for (size_t i = 0; i < in.size(); ++i) operands.push_back(in[i] ? &wide[i] : nullptr);
  FORGE_ASSIGN_OR_RETURN(const std::vector<HostValue> out, Magnitudes(op, operands));
  return Doubles(out[index]);
}

// What weights of type `t` may be rounded by, of each element of the first result; see
// OpInfo::weighed.
absl::StatusOr<std::vector<double>> RoundedWeights(const AnyOp& op, Operands in, DType t) {
  const auto weighed = static_cast<size_t>(op.def().info.weighed);
  std::vector<HostValue> wide = Widened(in, false);
  wide[weighed] = std::move(Widened(in.subspan(weighed, 1), true)[0]);
  std::vector<const HostValue*> operands;
  for (size_t i = 0; i < in.size(); ++i) operands.push_back(in[i] ? &wide[i] : nullptr);
  FORGE_ASSIGN_OR_RETURN(const std::vector<HostValue> sums, Evaluate(op, operands));
  std::vector<double> out = Doubles(sums[0]);
  for (double& v : out) v *= std::ldexp(1.0, -FormatOf(t).digits);
  return out;
}

absl::StatusOr<Bound> BoundOf(const AnyOp& op, Operands in, DType t, size_t index) {
  Bound bound;
  const DType accumulator = AccumulatorOf(t);
  if (const ScalarDef* scalar = op.def().scalar) {
    bound.ulps = t == accumulator ? scalar->info.ulps : 1;
    bound.absolute = scalar->info.ulps * UnitOf(scalar->info.scale, accumulator);
    return bound;
  }
  Types types;
  for (const HostValue* v : in) types.push_back(v ? v->type() : Type());
  const Dim terms = op.Cost(types).terms;
  if (!terms.is_constant()) return Internal("{}: terms {} not bound", op.name(), terms.ToText());
  if (terms.constant() == 0) return bound;
  bound.ulps = 1;
  bound.share = 4 * std::ldexp(1.0, -FormatOf(accumulator).digits) *
                std::sqrt(static_cast<double>(terms.constant()));
  FORGE_ASSIGN_OR_RETURN(bound.sums, Sums(op, in, index));
  if (op.def().info.weighed >= 0 && index == 0 && t != accumulator) {
    FORGE_ASSIGN_OR_RETURN(bound.own, RoundedWeights(op, in, t));
  }
  return bound;
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool IsTiny(double v, DType t) { return std::fabs(v) <= std::ldexp(1.0, FormatOf(t).least); }

// How many times its bound the element is off; infinite where NaN or infinities differ.
double Excess(double reference, double got, double bound, DType t) {
  if (SameNumber(reference, got)) return 0;
  if (!std::isfinite(reference) || !std::isfinite(got)) return INFINITY;
  if (IsTiny(reference, t) && IsTiny(got, t)) return 0;
  const double off = std::fabs(got - reference);
  return bound > 0 ? off / bound : INFINITY;
}

std::string PlaceText(const HostValue& v, size_t flat) {
  return fmt::format("[{}]", fmt::join(v.Unflat(static_cast<int64_t>(flat)), ", "));
}

absl::Status CompareFloats(const AnyOp& op, const Bound& bound, const HostValue& reference,
                           const HostValue& result) {
  const DType t = result.dtype();
  const std::vector<double> expected = Doubles(reference), got = Doubles(result);
  size_t worst = 0, count = 0;
  double most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double excess = Excess(expected[i], got[i], bound.At(i, expected[i], t), t);
    count += excess > 1;
    if (excess <= most) continue;
    most = excess;
    worst = i;
  }
  if (most <= 1) return absl::OkStatus();
  return OutOfRange("{}: element {} is {}, should be {} within {:.3g}; {} of {} elements are off",
                    op.ToText(), PlaceText(result, worst), got[worst], expected[worst],
                    bound.At(worst, expected[worst], t), count, expected.size());
}

// A part may be off by what the modulus allows, and a number that is not finite is any such number.
absl::Status CompareComplex(const AnyOp& op, const Bound& bound, const HostValue& reference,
                            const HostValue& result) {
  const DType part = RealOf(result.dtype());
  const std::vector<std::complex<double>> expected = Complexes(reference), got = Complexes(result);
  const auto finite = [](std::complex<double> z) {
    return std::isfinite(z.real()) && std::isfinite(z.imag());
  };
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!finite(expected[i]) && !finite(got[i])) continue;
    const double most = bound.At(i, std::abs(expected[i]), part);
    const double off = std::fmax(Excess(expected[i].real(), got[i].real(), most, part),
                                 Excess(expected[i].imag(), got[i].imag(), most, part));
    if (!(off <= 1))
      return OutOfRange("{}: element {} is {}, should be {} within {:.3g} in each part",
                        op.ToText(), PlaceText(result, i), Number(got[i]).ToText(),
                        Number(expected[i]).ToText(), most);
  }
  return absl::OkStatus();
}

absl::Status CompareIntegers(const AnyOp& op, const HostValue& reference, const HostValue& result) {
  const std::vector<int64_t> expected = Integers(reference), got = Integers(result);
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != got[i])
      return OutOfRange("{}: element {} is {}, should be {}", op.ToText(), PlaceText(result, i),
                        got[i], expected[i]);
  return absl::OkStatus();
}

}  // namespace

absl::Status CompareResult(const AnyOp& op, Operands in, const HostValue& reference,
                           const HostValue& result, size_t index) {
  if (reference.type() != result.type())
    return OutOfRange("{}: the result is {}, should be {}", op.ToText(), result.type().ToText(),
                      reference.type().ToText());
  const bool is_complex = Has(kComplexTypes, result.dtype());
  if (!is_complex && !Has(kAllFloatTypes, result.dtype()))
    return CompareIntegers(op, reference, result);
  FORGE_ASSIGN_OR_RETURN(Bound bound, BoundOf(op, in, RealOf(result.dtype()), index));
  const bool on_complex = std::ranges::any_of(
      in, [](const HostValue* v) { return v != nullptr && Has(kComplexTypes, v->dtype()); });
  if (on_complex) {
    bound.ulps += kComplexUlps;
    bound.share *= 2;  // each term is two products
  }
  return is_complex ? CompareComplex(op, bound, reference, result)
                    : CompareFloats(op, bound, reference, result);
}

}  // namespace forge::ir
