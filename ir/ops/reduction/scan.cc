// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/reduction/scan.h"

#include <cmath>
#include <complex>
#include <limits>

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/complex/products.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/scatter.h"
#include "ir/ops/movement/transpose.h"

namespace forge::ir {
namespace {

double LogSumExp(double a, double b) {
  const double most = std::fmax(a, b), least = std::fmin(a, b);
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return most == least ? most + std::log(2.0) : most + std::log1p(std::exp(least - most));
}

template <class T>
T Combine(ScanKind kind, T sum, T x) {
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    if (kind == ScanKind::kMax) return std::isnan(sum) || sum > x ? sum : x;
    if (kind == ScanKind::kMin) return std::isnan(sum) || sum < x ? sum : x;
  }
  if constexpr (std::is_same_v<T, double>)
    if (kind == ScanKind::kLogSumExp) return LogSumExp(sum, x);
  if (kind == ScanKind::kProd) return Product(sum, x);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x));
  else
    return sum + x;
}

// The sum or product of no element.
template <class T>
T Nothing(ScanKind kind) {
  return kind == ScanKind::kProd ? T(1) : T(0);
}

template <class T>
std::vector<T> Scanned(const Scan& op, std::span<const T> x, std::span<const int64_t> shape,
                       int64_t axis) {
  std::vector<T> y(x.size());
  if (x.empty()) return y;
  for (const Lane& lane : Lanes(shape, static_cast<int>(axis))) {
    T so_far = Nothing<T>(op.kind);
    for (int64_t i = 0; i < lane.n; ++i) {
      const auto at = static_cast<size_t>(lane[op.reverse ? lane.n - 1 - i : i]);
      const T with = i == 0 ? x[at] : Combine(op.kind, so_far, x[at]);
      y[at] = op.exclusive ? so_far : with;
      so_far = with;
    }
  }
  return y;
}

template <class T>
void EvaluateIntegers(const Scan& op, int64_t axis, Eval& e) {
  const std::vector<int64_t> bits = Integers(*e.in(0));
  const std::vector<T> from(bits.begin(), bits.end());
  const std::vector<T> y = Scanned<T>(op, from, e.in(0)->shape(), axis);
  for (size_t i = 0; i < y.size(); ++i)
    e.out(0).SetI64(static_cast<int64_t>(i), static_cast<int64_t>(y[i]));
}

// Does a scan end at `later` rather than at `sofar`?
template <class T>
bool IsBeyond(ScanKind kind, T later, T so_far) {
  if (std::isnan(later) || std::isnan(so_far)) return std::isnan(later);
  return kind == ScanKind::kMax ? later >= so_far : later <= so_far;
}

template <class T>
void EvaluateWithIndex(const ScanWithIndex& op, std::span<const T> x, int64_t axis, Eval& e) {
  if (x.empty()) return;
  for (const Lane& lane : Lanes(e.in(0)->shape(), static_cast<int>(axis))) {
    int64_t best = op.reverse ? lane.n - 1 : 0;
    for (int64_t n = 0; n < lane.n; ++n) {
      const int64_t i = op.reverse ? lane.n - 1 - n : n;
      if (IsBeyond(op.kind, x[static_cast<size_t>(lane[i])], x[static_cast<size_t>(lane[best])]))
        best = i;
      e.out(0).SetNumber(lane[i], e.in(0)->number(lane[best]));
      e.out(1).SetI64(lane[i], best);
    }
  }
}

// Appends the gradient of a scan that selects: each dy goes to the element that was selected.
Value ToSelected(const GradArgs& g, Value index, int64_t axis) {
  const Type& t = g.in[0].type();
  const Value zeros = g.fn(Fill{0, t.dtype(), t.shape()}, {});
  return g.fn(Scatter{.axis = axis, .mode = ScatterMode::kAdd}, {zeros, index, g.dout[0]});
}

// dx[j] = sum of dy[i] y[i] / x[j] over i from j on. At the first zero the other factors stand in
// for y / x; behind it all is zero.
Value ProductGradient(const Scan& op, const Scan& back, const GradArgs& g) {
  Function& f = g.fn;
  const Value x = Widened(g.in[0]), y = Widened(g.out[0]), dy = Widened(g.dout[0]);
  const Value ones = f(Fill{1, x.type().dtype(), x.type().shape()}, {});
  const Value zero = select(abs(x) > 0.0, 0.0, ones);
  const Value zeros = f(Scan{.axis = op.axis, .reverse = op.reverse}, {zero});
  const Value before = f(back, {y * dy}) / select(zero > 0.5, 1.0, x);
  const Value first = select(zeros > 1.5, 0.0, zero);
  const Value others = f(op, {select(first > 0.5, 1.0, x)});
  const Value at_zero = f(back, {others * dy});
  const Value dx = select(zeros > 0.5, select(first > 0.5, at_zero, 0.0), before);
  return Narrowed(dx, g.in[0].type().dtype());
}

// dx[j] = sum of dy[i] exp(x[j] - y[i]) over i from j on, as logarithms of the positive and of the
// negative terms, which do not overflow.
Value LogSumExpGradient(const Scan& back, const GradArgs& g) {
  const Value x = Widened(g.in[0]), y = Widened(g.out[0]), dy = Widened(g.dout[0]);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const Value finite = select(y > -kInfinite, y, kInfinite);  // else nothing was summed
  Scan logs = back;
  logs.kind = ScanKind::kLogSumExp;
  const auto part = [&](Value weight) {
    return exp(g.fn(logs, {log(max(weight, 0.0)) - finite}) + x);
  };
  return Narrowed(part(dy) - part(-dy), g.in[0].type().dtype());
}

}  // namespace

absl::StatusOr<Types> Scan::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(NormalAxis(axis, in[0].rank()).status());
  const DType t = in[0].dtype();
  const bool extreme = kind == ScanKind::kMax || kind == ScanKind::kMin;
  if (extreme && !Has(kRealTypes, t)) return InvalidArgument("{} has no order", Name(t));
  if (kind == ScanKind::kLogSumExp && !Has(kFloatTypes, t))
    return InvalidArgument("log_sum_exp takes floats, not {}", Name(t));
  if (exclusive && kind != ScanKind::kSum && kind != ScanKind::kProd)
    return InvalidArgument("only sum and prod have a value before the first element");
  return Types{Type::Tensor(t, in[0].shape())};
}

Values Scan::gradient(const GradArgs& g) const {
  const Scan back{.axis = axis, .exclusive = exclusive, .reverse = !reverse};
  switch (kind) {
    case ScanKind::kSum:
      return {g.fn(back, {g.dout[0]})};
    case ScanKind::kProd:
      return {ProductGradient(*this, back, g)};
    case ScanKind::kLogSumExp:
      return {LogSumExpGradient(back, g)};
    case ScanKind::kMax:
    case ScanKind::kMin:
      break;
  }
  const auto along = NormalAxis(axis, g.in[0].type().rank());
  if (!along.ok()) return {Value{}};
  const ScanWithIndex selecting{.kind = kind, .axis = axis, .reverse = reverse};
  return {ToSelected(g, g.fn.Add(selecting, g.in)[1], *along)};
}

Values Scan::decompose_complex(Function& f, ValueSpan in) const {
  if (kind != ScanKind::kProd) return DecomposeComplex(*this, f, in);
  const auto normal = NormalAxis(axis, in[0].type().rank());
  if (!normal.ok()) return f.Fail(normal.status()), Values{in[0]};
  Transpose swap;
  for (int64_t a = 0; a < in[0].type().rank(); ++a) swap.permutation.push_back(a);
  std::swap(swap.permutation[static_cast<size_t>(*normal)], swap.permutation.back());
  const ComplexParts x = PartsOf(in[0]);
  const Value re = f(swap, {x.re});
  const ComplexParts y = ProductsAlongLast({re, f(swap, {x.im})}, {exclusive, reverse});
  return {f(swap, {Joined(y)})};
}

absl::Status Scan::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, x.rank()));
  if (Has(kFloatTypes, x.dtype()))
    Store(Scanned<double>(*this, Doubles(x), x.shape(), along), e.out(0));
  else if (Has(kComplexTypes, x.dtype()))
    Store(Scanned<std::complex<double>>(*this, Complexes(x), x.shape(), along), e.out(0));
  else if (Has(kUnsignedTypes, x.dtype()))
    EvaluateIntegers<uint64_t>(*this, along, e);
  else
    EvaluateIntegers<int64_t>(*this, along, e);
  return absl::OkStatus();
}

Cost Scan::cost(TypeSpan in) const {
  const auto along = NormalAxis(axis, in[0].rank());
  const bool exact = kind == ScanKind::kMax || kind == ScanKind::kMin;
  return {.flops = in[0].elements(),
          .terms = exact || !along.ok() ? Dim(0) : in[0].shape()[static_cast<size_t>(*along)]};
}

Cases Scan::cases() {
  Cases cases;
  for (ScanKind kind :
       {ScanKind::kSum, ScanKind::kProd, ScanKind::kMax, ScanKind::kMin, ScanKind::kLogSumExp}) {
    const bool logs = kind == ScanKind::kLogSumExp, product = kind == ScanKind::kProd;
    const bool order = kind == ScanKind::kMax || kind == ScanKind::kMin;
    const std::string range = product ? " in 1..1.25" : " in -4..4";
    const std::string t = logs ? "float" : order ? "real" : "number";
    cases.push_back({Scan{kind}, {t + "[3,7]" + range}});
    cases.push_back({Scan{kind, 1}, {t + "[2,9,5]" + range}});
    cases.push_back({Scan{kind, 0, false, true}, {t + "[6,4]" + range}});
    cases.push_back({Scan{kind, -1, false, true}, {"float[2,3,8]" + range}});
    cases.push_back(
        {Scan{kind}, {(kind == ScanKind::kSum ? "float" : "f32") + ("[2,900]" + range)}});
    cases.push_back({Scan{kind}, {"float[19] edges"}});
    cases.push_back({Scan{kind, 0}, {"float[0,3]"}});
    cases.push_back({Scan{kind, 1}, {"float[0,3]"}});
    cases.push_back({Scan{kind, -2}, {"float[2,1,3]" + range}});
    if (!order && !logs) {
      cases.push_back({Scan{kind, -1, true}, {t + "[3,8]" + range}});
      cases.push_back({Scan{kind, 0, true, true}, {"float[5,4]" + range}});
      cases.push_back({Scan{kind, 0, true}, {"float[1,4] edges"}});
    }
    cases.push_back({.op = Scan{kind}, .in = {"f32[16777216] in 0.999..1.001"}, .bench = true});
  }
  cases.push_back({Scan{ScanKind::kProd}, {"float[3,9] in -1..1"}});
  cases.push_back({Scan{ScanKind::kProd, 0, true}, {"f64[7] in 0..0"}});
  cases.push_back({Scan{ScanKind::kLogSumExp}, {"float[5,33] in -100..80"}});
  cases.push_back({Scan{ScanKind::kMax, 1, false, true}, {"real[3,37] edges"}});
  cases.push_back({Scan{}, {"int[40] edges"}});
  for (const std::string shape : {"f32[70001]", "u64[2,40000]", "f32[2,9000,3]", "f16[5000,8]"})
    cases.push_back({Scan{.axis = shape.size() > 10 ? 1 : 0}, {shape}});
  cases.push_back({Scan{.axis = -1, .exclusive = true, .reverse = true}, {"f32[2,10000]"}});
  cases.push_back({Scan{ScanKind::kMin, 0, false, true}, {"f32[30001]"}});
  cases.push_back({Scan{ScanKind::kLogSumExp, 0}, {"f32[30000]"}});
  for (const int64_t axis : {0, 1})
    cases.push_back({.op = Scan{.axis = axis}, .in = {"f32[4096,4096]"}, .bench = true});
  cases.push_back({Scan{.axis = 2}, {"f32[2,3]"}, "axis 2 is outside rank 2"});
  cases.push_back({Scan{}, {"f32[]"}, "axis -1 is outside rank 0"});
  cases.push_back({Scan{ScanKind::kMax}, {"c64[2,3]"}, "c64 has no order"});
  cases.push_back(
      {Scan{ScanKind::kMin, -1, true}, {"f32[2,3]"}, "a value before the first element"});
  cases.push_back({Scan{ScanKind::kLogSumExp}, {"i32[2,3]"}, "takes floats, not i32"});
  return cases;
}

absl::StatusOr<Types> ScanWithIndex::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(NormalAxis(axis, in[0].rank()).status());
  if (kind != ScanKind::kMax && kind != ScanKind::kMin)
    return InvalidArgument("only max and min are elements that have an index");
  return Types{in[0], Type::Tensor(DType::kI64, in[0].shape())};
}

Values ScanWithIndex::gradient(const GradArgs& g) const {
  const auto along = NormalAxis(axis, g.in[0].type().rank());
  if (!along.ok() || !g.dout[0]) return {Value{}};
  return {ToSelected(g, g.out[1], *along)};
}

absl::Status ScanWithIndex::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, x.rank()));
  if (Has(kFloatTypes, x.dtype())) {
    EvaluateWithIndex<double>(*this, Doubles(x), along, e);
    return absl::OkStatus();
  }
  const std::vector<int64_t> bits = Integers(x);
  if (Has(kUnsignedTypes, x.dtype()))
    EvaluateWithIndex<uint64_t>(*this, std::vector<uint64_t>(bits.begin(), bits.end()), along, e);
  else
    EvaluateWithIndex<int64_t>(*this, bits, along, e);
  return absl::OkStatus();
}

Cost ScanWithIndex::cost(TypeSpan in) const { return {.flops = in[0].elements(), .terms = 0}; }

Cases ScanWithIndex::cases() {
  const auto min = ScanKind::kMin;
  return {{ScanWithIndex{}, {"ordered[3,7] in -2..2"}},
          {ScanWithIndex{min, 1}, {"ordered[2,9,5] in -2..2"}},
          {ScanWithIndex{.axis = 0, .reverse = true}, {"ordered[6,4] in 0..2"}},
          {ScanWithIndex{min, -1, true}, {"ordered[2,37] edges"}},
          {ScanWithIndex{}, {"ordered[40] edges"}},
          {ScanWithIndex{}, {"f32[2,40] in -inf..-inf"}},
          {ScanWithIndex{min}, {"float[2,300] in -4..4"}},
          {ScanWithIndex{}, {"f32[30001]"}},
          {ScanWithIndex{min, 0, true}, {"f32[30002]"}},
          {ScanWithIndex{min, 0, true}, {"u64[9000,2]"}},
          {ScanWithIndex{.axis = 0}, {"f32[0,3]"}},
          {ScanWithIndex{.axis = 1}, {"f32[0,3]"}},
          {ScanWithIndex{.axis = -2}, {"f32[2,1,3]"}},
          {.op = ScanWithIndex{}, .in = {"f32[16777216]"}, .bench = true},
          {ScanWithIndex{.axis = 2}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
          {ScanWithIndex{ScanKind::kSum}, {"f32[2,3]"}, "only max and min"},
          {ScanWithIndex{}, {"c64[2]"}, "x"}};
}

FORGE_DEFINE_OP(Scan)
FORGE_DEFINE_OP(ScanWithIndex)

}  // namespace forge::ir
