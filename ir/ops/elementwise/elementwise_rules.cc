// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise/elementwise_rules.h"

#include <fmt/format.h>

#include "base/narrow_float.h"
#include "ir/op/elements.h"
#include "ir/ops/elementwise/row_parts.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

DType AttributeDType(const OpDef& def, const void* self) {
  for (const Field& f : def.fields)
    if (f.kind == FieldKind::kDType) return *static_cast<const DType*>(f.at_const(self));
  FORGE_CHECK(!"a row with ResultType::kAttribute has a field of kind DType");
  return {};
}

DType ResultOf(const OpDef& def, const void* self, TypeSpan in) {
  switch (def.scalar->info.result) {
    case ResultType::kBool:
      return DType::kBool;
    case ResultType::kAttribute:
      return AttributeDType(def, self);
    case ResultType::kReal:
      return RealOf(in.back().dtype());
    case ResultType::kSame:
      break;
  }
  return in.back().dtype();
}

template <class D>
std::vector<D> ElementsAs(const HostValue& v) {
  if constexpr (std::is_same_v<D, double>) {
    return Doubles(v);
  } else if constexpr (std::is_same_v<D, std::complex<double>>) {
    return Complexes(v);
  } else {
    const std::vector<int64_t> all = Integers(v);
    return std::vector<D>(all.begin(), all.end());
  }
}

// Applies `fn` at every index of the result, which the operands broadcast to.
template <class D>
void Apply(D (*fn)(const void*, const D*), const void* self, Eval& e) {
  const size_t arity = e.inputs();
  HostValue& out = e.out(0);
  std::array<std::vector<D>, 3> operands;
  std::array<Index, 3> strides;
  for (size_t i = 0; i < arity; ++i) {
    operands[i] = ElementsAs<D>(*e.in(i));
    strides[i] = BroadcastStrides(e.in(i)->shape(), out.shape());
  }
  const size_t outer = out.shape().empty() ? 0 : out.shape().size() - 1;
  const int64_t row = out.shape().empty() ? 1 : out.shape().back();
  std::vector<D> results;
  results.reserve(static_cast<size_t>(out.elements()));
  for (Box at(out.shape().first(outer)); at; at.Next()) {
    std::array<const D*, 3> from{};
    std::array<int64_t, 3> step{};
    for (size_t i = 0; i < arity; ++i) {
      from[i] = operands[i].data();
      for (size_t a = 0; a < outer; ++a) from[i] += (*at)[a] * strides[i][a];
      if (!strides[i].empty()) step[i] = strides[i].back();
    }
    for (int64_t column = 0; column < row; ++column) {
      std::array<D, 3> x{};
      for (size_t i = 0; i < arity; ++i) x[i] = from[i][column * step[i]];
      results.push_back(fn(self, x.data()));
    }
  }
  if constexpr (std::is_integral_v<D>)
    for (size_t i = 0; i < results.size(); ++i)
      out.SetI64(static_cast<int64_t>(i), static_cast<int64_t>(results[i]));
  else
    Store(results, out);
}

void CastElement(const HostValue& x, int64_t i, HostValue& y) {
  if (Has(kComplexTypes, x.dtype())) {
    if (y.dtype() == DType::kBool) return y.SetI64(i, x.c128(i) != 0.0);
    return y.SetC128(i, x.c128(i));
  }
  const bool from_float = Has(kAllFloatTypes, x.dtype());
  if (!from_float && !Has(kAllFloatTypes | kComplexTypes, y.dtype()))
    y.SetI64(i, x.i64(i));
  else if (y.dtype() == DType::kF32 && x.dtype() == DType::kU64)
    y.Set(i, static_cast<float>(static_cast<uint64_t>(x.i64(i))));  // rounds once
  else if (y.dtype() == DType::kF32 && !from_float)
    y.Set(i, static_cast<float>(x.i64(i)));
  else
    y.Set(i, x.f64(i));
}

}  // namespace

template <>
double Saturated<double>(double v) {
  return v;
}
template <>
int64_t Saturated<int64_t>(double v) {
  return SaturatedI64(v);
}
template <>
uint64_t Saturated<uint64_t>(double v) {
  return SaturatedU64(v);
}

absl::Status CheckCast(DType to) {
  return Has(kStoredOnlyTypes, to) ? absl::OkStatus() : CheckNumber(to);
}

absl::Status CheckNumber(DType t) {
  if (Has(kNumberTypes | Bit(DType::kBool), t)) return absl::OkStatus();
  return InvalidArgument(
      "{} is neither bool, nor an integer of 8 to 64 bits, nor a float of 16 to 64 bits, nor "
      "complex",
      Name(t));
}

absl::Status CheckBounds(double low, double high, const Type& x) {
  if (std::isnan(low) || std::isnan(high)) return InvalidArgument("a bound is NaN");
  if (Has(kFloatTypes, x.dtype())) return absl::OkStatus();
  const auto [first, last] = RangeOf(x.dtype());
  for (double bound : {low, high})
    if (std::isfinite(bound) && bound != std::trunc(bound))
      return InvalidArgument("bound {} of {} is not a whole number", bound, Name(x.dtype()));
  if (low > last || high < first)
    return InvalidArgument("bounds {}..{} lie outside {}", low, high, Name(x.dtype()));
  return absl::OkStatus();
}

absl::Status CheckAbove(std::string_view attribute, double v, double least) {
  return v > least ? absl::OkStatus()
                   : InvalidArgument("{} {} is not above {}", attribute, v, least);
}

absl::Status EvaluateCast(Eval& e) {
  const HostValue& x = *e.in(0);
  HostValue& y = e.out(0);
  for (int64_t i = 0; i < x.elements(); ++i) CastElement(x, i, y);
  return absl::OkStatus();
}

absl::StatusOr<Types> InferElementWise(const AnyOp& op, TypeSpan in) {
  const ScalarDef& scalar = *op.def().scalar;
  if (scalar.check) FORGE_RETURN_IF_ERROR(scalar.check(op.self(), in));
  std::vector<const Dims*> shapes;
  for (const Type& t : in) shapes.push_back(&t.shape());
  absl::StatusOr<Dims> shape = BroadcastShapes(shapes);
  if (!shape.ok()) {
    std::string words;
    for (const Dims* s : shapes) words += (words.empty() ? "" : ", ") + ToText(*s);
    return InvalidArgument("shapes {} do not broadcast: {}", words, Message(shape.status()));
  }
  return Types{Type::Tensor(ResultOf(op.def(), op.self(), in), *std::move(shape))};
}

absl::Status EvaluateElementWise(const AnyOp& op, Eval& e) {
  const ScalarDef& scalar = *op.def().scalar;
  const DType domain = e.in(e.inputs() - 1)->dtype();
  if (Has(kFloatTypes, domain))
    Apply(scalar.f64, op.self(), e);
  else if (Has(kComplexTypes, domain))
    Apply(scalar.c128, op.self(), e);
  else if (Has(kUnsignedTypes, domain))
    Apply(scalar.u64, op.self(), e);
  else
    Apply(scalar.i64, op.self(), e);
  return absl::OkStatus();
}

Values ElementWiseGradient(const AnyOp& op, const GradArgs& g) {
  std::array<Value, 3> dx;
  op.def().scalar->gradient(op.self(), g.in.data(), g.out[0], g.dout[0], dx.data());
  Values out;
  for (size_t i = 0; i < g.in.size(); ++i) {
    const bool flows = dx[i] && Has(kFloatTypes, g.in[i].type().dtype());
    out.push_back(flows ? SumTo(dx[i], g.in[i].type().shape()) : Value{});
  }
  return out;
}

}  // namespace forge::ir
