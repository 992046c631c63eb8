// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/reduction/reduce.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "ir/dim/broadcast.h"
#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/complex/products.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/reduction/scan.h"

namespace forge::ir {
namespace {

absl::StatusOr<std::vector<int64_t>> AxesOf(const Reduce& op, int64_t rank) {
  if (!op.axes.empty()) return NormalAxes(op.axes, rank);
  std::vector<int64_t> all(static_cast<size_t>(rank));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  return all;
}

bool Contains(std::span<const int64_t> axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

Dims Reduced(const Dims& shape, std::span<const int64_t> axes, bool keep_dims) {
  Dims out;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (!Contains(axes, a))
      out.push_back(shape[a]);
    else if (keep_dims)
      out.push_back(1);
  }
  return out;
}

// How many elements go into each result.
Dim CountOf(const Dims& shape, std::span<const int64_t> axes) {
  Dim count = 1;
  for (int64_t a : axes) count = count * shape[static_cast<size_t>(a)];
  return count;
}

template <class T>
T StartOf(ReduceKind kind, DType t) {
  constexpr bool kFloat = !std::is_integral_v<T>;
  const auto limit = [&](double infinite, double finite) -> T {
    if constexpr (kFloat)
      return infinite;
    else if constexpr (std::is_same_v<T, int64_t>)
      return SaturatedI64(finite);
    else
      return SaturatedU64(finite);
  };
  const auto [low, high] = kFloat ? std::pair(0.0, 0.0) : RangeOf(t);
  switch (kind) {
    case ReduceKind::kMax:
      return limit(-std::numeric_limits<double>::infinity(), low);
    case ReduceKind::kMin:
      return limit(std::numeric_limits<double>::infinity(), high);
    case ReduceKind::kProd:
      return 1;
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      break;
  }
  return 0;
}

// One step of the reduction; integers wrap, NaN stays.
template <class T>
T Combine(ReduceKind kind, T sum, T x) {
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    if (kind == ReduceKind::kMax) return std::isnan(sum) || sum >= x ? sum : x;
    if (kind == ReduceKind::kMin) return std::isnan(sum) || sum <= x ? sum : x;
  }
  if (kind == ReduceKind::kProd) return Product(sum, x);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x));
  else
    return sum + x;
}

Dim CombineDims(ReduceKind kind, const Dim& sum, const Dim& x) {
  switch (kind) {
    case ReduceKind::kMax:
      return Max(sum, x);
    case ReduceKind::kMin:
      return Min(sum, x);
    case ReduceKind::kProd:
      return sum * x;
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      break;
  }
  return sum + x;
}

// The axes in an order with the reduced ones last.
std::vector<int64_t> ReducedLast(size_t rank, std::span<const int64_t> axes) {
  std::vector<int64_t> order;
  for (size_t a = 0; a < rank; ++a)
    if (!Contains(axes, a)) order.push_back(static_cast<int64_t>(a));
  order.insert(order.end(), axes.begin(), axes.end());
  return order;
}

// `moved`, of `shape` in the order of ReducedLast, with the reduced axes as one.
Value AsRows(Value moved, const Dims& shape, std::span<const int64_t> axes) {
  Dims rows = Reduced(shape, axes, false);
  rows.push_back(CountOf(shape, axes));
  return (*moved.fn)(Reshape{rows}, {moved});
}

// For each element the product of the others that are reduced with it, which may be zeros: of those
// before it and of those after it, with the reduced axes as one.
Value ProductOfOthers(Value x, std::span<const int64_t> axes) {
  Function& f = *x.fn;
  const Dims& shape = x.type().shape();
  const std::vector<int64_t> order = ReducedLast(shape.size(), axes);
  std::vector<int64_t> back(shape.size());
  for (size_t a = 0; a < order.size(); ++a)
    back[static_cast<size_t>(order[a])] = static_cast<int64_t>(a);
  const Value moved = f(Transpose{order}, {Widened(x)});
  const Value row = AsRows(moved, shape, axes);
  const Scan before{.kind = ScanKind::kProd, .exclusive = true};
  const Scan after{.kind = ScanKind::kProd, .exclusive = true, .reverse = true};
  const Value prefix = f(before, {row}), others = prefix * f(after, {row});
  return f(Transpose{back}, {f(Reshape{moved.type().shape()}, {others})});
}

// Results in row-major order; `strides` lead from an index of x to its result.
template <class T>
std::vector<T> ReduceAll(ReduceKind kind, std::span<const T> x, std::span<const int64_t> shape,
                         std::span<const int64_t> strides, std::vector<T> results) {
  size_t flat = 0;
  for (Box at(shape); at; at.Next(), ++flat) {
    int64_t to = 0;
    for (size_t a = 0; a < shape.size(); ++a) to += (*at)[a] * strides[a];
    T& result = results[static_cast<size_t>(to)];
    result = Combine(kind, result, x[flat]);
  }
  return results;
}

// Strides of the result at the indices of x, 0 along reduced axes.
Index ResultStrides(std::span<const int64_t> shape, std::span<const int64_t> axes) {
  Index strides(shape.size(), 0);
  int64_t step = 1;
  for (size_t a = shape.size(); a-- > 0;) {
    if (Contains(axes, a)) continue;
    strides[a] = step;
    step *= shape[a];
  }
  return strides;
}

template <class T>
void EvaluateIntegers(const Reduce& op, std::span<const int64_t> axes, Eval& e) {
  const HostValue& x = *e.in(0);
  HostValue& y = e.out(0);
  const std::vector<int64_t> bits = Integers(x);
  const std::vector<T> from(bits.begin(), bits.end());
  std::vector<T> start(static_cast<size_t>(y.elements()), StartOf<T>(op.kind, x.dtype()));
  const std::vector<T> results =
      ReduceAll<T>(op.kind, from, x.shape(), ResultStrides(x.shape(), axes), std::move(start));
  for (size_t i = 0; i < results.size(); ++i)
    y.SetI64(static_cast<int64_t>(i), static_cast<int64_t>(results[i]));
}

template <class T>
void EvaluateFloats(const Reduce& op, std::span<const T> from, std::span<const int64_t> axes,
                    Eval& e) {
  const HostValue& x = *e.in(0);
  HostValue& y = e.out(0);
  std::vector<T> start(static_cast<size_t>(y.elements()), StartOf<T>(op.kind, x.dtype()));
  std::vector<T> results =
      ReduceAll<T>(op.kind, from, x.shape(), ResultStrides(x.shape(), axes), std::move(start));
  if (op.kind == ReduceKind::kMean) {
    double count = 1;
    for (int64_t a : axes) count *= static_cast<double>(x.dim(static_cast<int>(a)));
    for (T& v : results) v /= count;
  }
  Store(results, y);
}

}  // namespace

absl::StatusOr<Types> Reduce::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const auto reduced, AxesOf(*this, in[0].rank()));
  const DType t = in[0].dtype();
  if (kind == ReduceKind::kMean && !Has(kFloatTypes | kComplexTypes, t))
    return InvalidArgument("the mean of {} is not an integer", Name(t));
  if ((kind == ReduceKind::kMax || kind == ReduceKind::kMin) && !Has(kRealTypes, t))
    return InvalidArgument("{} has no order", Name(t));
  return Types{Type::Tensor(t, Reduced(in[0].shape(), reduced, keep_dims))};
}

Values Reduce::gradient(const GradArgs& g) const {
  const Value x = g.in[0];
  const auto reduced = AxesOf(*this, x.type().rank());
  if (!reduced.ok()) return {Value{}};
  const Dims kept = Reduced(x.type().shape(), *reduced, true);
  const Value dy = g.fn(Reshape{kept}, {g.dout[0]});
  const auto spread = [&](Value v) { return g.fn(BroadcastTo{x.type().shape()}, {v}); };
  const Value ones = g.fn(Fill{1, x.type().dtype(), x.type().shape()}, {});
  if (kind == ReduceKind::kSum) return {spread(dy)};
  if (kind == ReduceKind::kMean) {
    return {spread(dy / ReduceAxes(ReduceKind::kSum, ones, *reduced))};
  }
  if (kind == ReduceKind::kProd)
    return {Narrowed(Widened(spread(dy)) * ProductOfOthers(x, *reduced), x.type().dtype())};
  const Value y = g.fn(Reshape{kept}, {g.out[0]});
  // Ties share evenly.
  const Value ties = select(x > y, 0.0, select(x < y, 0.0, ones));
  return {dy * ties / ReduceAxes(ReduceKind::kSum, ties, *reduced)};
}

Values Reduce::decompose_complex(Function& f, ValueSpan in) const {
  if (kind != ReduceKind::kProd) return DecomposeComplex(*this, f, in);
  const Dims shape = in[0].type().shape();
  const auto reduced = AxesOf(*this, in[0].type().rank());
  if (!reduced.ok()) return f.Fail(reduced.status()), Values{in[0]};
  const Transpose last{ReducedLast(shape.size(), *reduced)};
  const ComplexParts x = PartsOf(in[0]);
  const Value re = AsRows(f(last, {x.re}), shape, *reduced);
  const ComplexParts y = ProductAlongLast({re, AsRows(f(last, {x.im}), shape, *reduced)});
  return {f(Reshape{Reduced(shape, *reduced, keep_dims)}, {Joined(y)})};
}

absl::Status Reduce::evaluate(Eval& e) const {
  const DType t = e.in(0)->dtype();
  FORGE_ASSIGN_OR_RETURN(const auto reduced, AxesOf(*this, e.in(0)->rank()));
  if (Has(kFloatTypes, t))
    EvaluateFloats<double>(*this, Doubles(*e.in(0)), reduced, e);
  else if (Has(kComplexTypes, t))
    EvaluateFloats<std::complex<double>>(*this, Complexes(*e.in(0)), reduced, e);
  else if (Has(kUnsignedTypes, t))
    EvaluateIntegers<uint64_t>(*this, reduced, e);
  else
    EvaluateIntegers<int64_t>(*this, reduced, e);
  return absl::OkStatus();
}

Cost Reduce::cost(TypeSpan in) const {
  const auto reduced = AxesOf(*this, in[0].rank());
  const bool exact = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  return {.flops = in[0].elements(),
          .terms = exact || !reduced.ok() ? Dim(0) : CountOf(in[0].shape(), *reduced)};
}

std::optional<Dims> Reduce::contents(TypeSpan in, Known known) const {
  const auto reduced = AxesOf(*this, in[0].rank());
  if (!known[0] || !reduced.ok()) return std::nullopt;
  if (known[0]->empty()) return std::nullopt;  // results of nothing are no elements of it
  const std::vector<int64_t> shape = Constants(in[0].shape());
  const Index strides = ResultStrides(shape, *reduced);
  std::vector<std::optional<Dim>> results;
  size_t flat = 0;
  for (Box at(shape); at; at.Next(), ++flat) {
    int64_t to = 0;
    for (size_t a = 0; a < shape.size(); ++a) to += (*at)[a] * strides[a];
    if (results.size() <= static_cast<size_t>(to)) results.resize(static_cast<size_t>(to) + 1);
    std::optional<Dim>& result = results[static_cast<size_t>(to)];
    result = result ? CombineDims(kind, *result, (*known[0])[flat]) : (*known[0])[flat];
  }
  Dims out;
  for (const std::optional<Dim>& d : results) out.push_back(*d);
  return out;
}

Cases Reduce::cases() {
  Cases cases;
  for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kMax, ReduceKind::kMin,
                          ReduceKind::kProd}) {
    const bool mean = kind == ReduceKind::kMean;
    const std::string range = kind == ReduceKind::kProd ? " in 1..1.25" : " in -4..4";
    const bool order = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
    const std::string t = mean ? "float|complex" : order ? "real" : "number";
    cases.push_back({Reduce{kind, {-1}}, {t + "[3,7]" + range}});
    cases.push_back({Reduce{kind, {0, 2}, false}, {t + "[5,3,4]" + range}});
    cases.push_back({Reduce{kind, {1}}, {"float[2,65,3]" + range}});
    cases.push_back({Reduce{kind, {2, 3}}, {"float[2,3,5,6]" + range}});
    cases.push_back({Reduce{kind, {}, false}, {"float[4,1,9]" + range}});
    if (kind == ReduceKind::kSum || kind == ReduceKind::kMax)
      for (const std::string shape : {"f32[70001,3]", "f32[9001,36]"})
        cases.push_back({Reduce{kind, {0}}, {shape + range}});
    cases.push_back({Reduce{kind, {1}}, {"float[3,0,2]"}});
    cases.push_back({Reduce{kind, {0}}, {"float[3,0,2]"}});
    cases.push_back({Reduce{kind, {0}}, {"float[1,5]" + range}});
    cases.push_back({.op = Reduce{kind, {-1}}, .in = {"f32[1024,4096]" + range}, .bench = true});
  }
  cases.push_back({Reduce{ReduceKind::kMax, {0}}, {"float[37] edges"}});
  cases.push_back({Reduce{ReduceKind::kMin, {1}}, {"float[3,37] edges"}});
  cases.push_back({Reduce{ReduceKind::kSum, {0}}, {"int[300] edges"}});
  cases.push_back({Reduce{ReduceKind::kSum, {}, false}, {"float[]"}});
  cases.push_back({Reduce{ReduceKind::kProd, {1}}, {"float[3,4] in 0..0"}});
  cases.push_back({Reduce{ReduceKind::kProd, {0}}, {"float[1,3] in 0..0"}});
  for (const int64_t axis : {0, 1})
    cases.push_back(
        {.op = Reduce{ReduceKind::kSum, {axis}}, .in = {"f32[4096,4096]"}, .bench = true});
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{1}, {0, 2}, {0, 1, 2}})
    cases.push_back(
        {.op = Reduce{ReduceKind::kSum, axes}, .in = {"f32[256,256,256]"}, .bench = true});
  cases.push_back(
      {.op = Reduce{ReduceKind::kMean, {2, 3}}, .in = {"f32[8,512,7,7]"}, .bench = true});
  cases.push_back({Reduce{ReduceKind::kSum, {2}}, {"f32[2,3]"}, "axis 2 is outside rank 2"});
  cases.push_back({Reduce{ReduceKind::kSum, {0, -2}}, {"f32[2,3]"}, "given twice"});
  cases.push_back({Reduce{ReduceKind::kMean, {0}}, {"i32[2,3]"}, "not an integer"});
  cases.push_back({Reduce{ReduceKind::kMax, {0}}, {"c64[2,3]"}, "c64 has no order"});
  return cases;
}

Value ReduceAxes(ReduceKind kind, Value x, std::vector<int64_t> axes) {
  return (*x.fn)(Reduce{kind, std::move(axes)}, {x});
}

Value WithoutAxes(Value x, const std::vector<int64_t>& axes) {
  if (!x.fn->status().ok()) return x;
  const auto reduced = AxesOf(Reduce{.axes = axes}, x.type().rank());
  if (!reduced.ok()) return x.fn->Fail(reduced.status()), x;
  return (*x.fn)(Reshape{Reduced(x.type().shape(), *reduced, false)}, {x});
}

Value WithAxes(Value y, const Dims& shape, const std::vector<int64_t>& axes) {
  const auto reduced = AxesOf(Reduce{.axes = axes}, static_cast<int64_t>(shape.size()));
  if (!reduced.ok()) return y.fn->Fail(reduced.status()), y;
  return (*y.fn)(Reshape{Reduced(shape, *reduced, true)}, {y});
}

Value SumTo(Value x, Dims shape) {
  const Dims from = x.type().shape();
  if (from.size() < shape.size()) return x;  // only after an error
  const size_t extra = from.size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t a = 0; a < from.size(); ++a)
    if (a < extra || (shape[a - extra] == 1 && from[a] != 1)) {
      axes.push_back(static_cast<int64_t>(a));
    } else if (from[a] != shape[a - extra] && MayEqualBroadcast(shape[a - extra], from[a])) {
      x.fn->Fail(Unimplemented("whether {} repeats to {} is not known before binding, so no sum",
                               shape[a - extra].ToText(), from[a].ToText()));
    }
  if (axes.empty()) return x;
  const Value sum = ReduceAxes(ReduceKind::kSum, x, std::move(axes));
  return extra == 0 ? sum : (*x.fn)(Reshape{std::move(shape)}, {sum});
}

FORGE_DEFINE_OP(Reduce)

}  // namespace forge::ir
