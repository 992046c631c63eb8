// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/indexing/scatter.h"

#include <cmath>
#include <complex>

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/gather.h"

namespace forge::ir {
namespace {

// Integers wrap, NaN stays.
template <class T>
T Updated(ScatterMode mode, T y, T update) {
  if (mode == ScatterMode::kSet) return update;
  if (mode == ScatterMode::kMul) return Product(y, update);
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    if (mode == ScatterMode::kMin) return std::isnan(y) || y <= update ? y : update;
    if (mode == ScatterMode::kMax) return std::isnan(y) || y >= update ? y : update;
  }
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(y) + static_cast<uint64_t>(update));
  else
    return y + update;
}

// The element of x that each update belongs to, in the order of updates; -1: dropped.
std::vector<int64_t> TargetsOf(const HostValue& x, const HostValue& indices,
                               std::span<const int64_t> updates, size_t axis) {
  const Index steps = BroadcastStrides(indices.shape(), updates), strides = Strides(x.shape());
  const int64_t extent = x.shape()[axis];
  std::vector<int64_t> targets;
  for (Box at(updates); at; at.Next()) {
    int64_t from = 0, to = 0;
    for (size_t a = 0; a < updates.size(); ++a) {
      from += (*at)[a] * steps[a];
      if (a != axis) to += (*at)[a] * strides[a];
    }
    const int64_t given = indices.i64(from);
    const int64_t index = given < 0 ? given + extent : given;
    targets.push_back(index < 0 || index >= extent ? -1 : to + index * strides[axis]);
  }
  return targets;
}

template <class T>
std::vector<T> Scattered(ScatterMode mode, std::vector<T> y, std::span<const T> updates,
                         std::span<const int64_t> targets) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    T& element = y[static_cast<size_t>(targets[i])];
    element = Updated(mode, element, updates[i]);
  }
  return y;
}

template <class T>
std::vector<T> WholeNumbers(const HostValue& v) {
  const std::vector<int64_t> bits = Integers(v);
  return {bits.begin(), bits.end()};
}

// The same for elements that are integers or bool.
template <class T>
void ScatterIntegers(ScatterMode mode, std::span<const int64_t> targets, Eval& e) {
  const std::vector<T> updates = WholeNumbers<T>(*e.in(2));
  const std::vector<T> y = Scattered<T>(mode, WholeNumbers<T>(*e.in(0)), updates, targets);
  for (size_t i = 0; i < y.size(); ++i)
    e.out(0).SetI64(static_cast<int64_t>(i), static_cast<int64_t>(y[i]));
}

// The parts that gradient rules share: indices with the shape of updates, and where they lead.
struct Selection {
  Selection(const Scatter& op, const GradArgs& g)
      : axis(op.axis),
        x(g.in[0]),
        updates(g.in[2]),
        indices(g.fn(BroadcastTo{updates.type().shape()}, {g.in[1]})) {}
  // The elements of `v`, shaped as x, that the updates belong to; 0 for dropped updates.
  Value Of(Value v) const { return (*v.fn)(GatherElements{.axis = axis}, {v, indices}); }
  Value Into(ScatterMode mode, Value v, Value by) const {
    return (*v.fn)(Scatter{axis, mode}, {v, indices, by});
  }
  int64_t axis;
  Value x, updates, indices;
};

Value IsEqual(Value a, Value b) { return (*a.fn)(Equal{}, {a, b}); }
Value Filled(double number, Value like) {
  return (*like.fn)(Fill{number, like.type().dtype(), like.type().shape()}, {});
}
Value OneWhere(Value condition, Value like) {
  return select(condition, Filled(1, like), Filled(0, like));
}

// Only the last update of an element has an effect.
Values GradientOfSet(const GradArgs& g, const Selection& s, Value dy) {
  const Dims& shape = s.updates.type().shape();
  const int64_t rank = s.updates.type().rank(), axis = s.axis < 0 ? s.axis + rank : s.axis;
  const Value own = g.fn(BroadcastTo{shape},
                         {Along(g.fn, DType::kI32, shape[static_cast<size_t>(axis)], axis, rank)});
  const Value none = g.fn(Fill{-1, DType::kI32, s.x.type().shape()}, {});
  const Value last = s.Of(s.Into(ScatterMode::kSet, none, own));
  return {s.Into(ScatterMode::kSet, dy, Filled(0, s.updates)), Value{},
          select(IsEqual(last, own), s.Of(dy), Filled(0, s.updates))};
}

// The factors of an element other than one that is 0: none of them may be 0.
Values GradientOfProduct(const Selection& s, Value dy) {
  const Value x_zero = IsEqual(s.x, Filled(0, s.x)),
              u_zero = IsEqual(s.updates, Filled(0, s.updates));
  const Value zeros = s.Into(ScatterMode::kAdd, OneWhere(x_zero, s.x), OneWhere(u_zero, s.updates));
  const Value x = select(x_zero, Filled(1, s.x), s.x);
  const Value updates = select(u_zero, Filled(1, s.updates), s.updates);
  const Value product = dy * s.Into(ScatterMode::kMul, x, updates);
  const Value if_none = select(zeros > 0.0, Filled(0, s.x), product);
  const Value if_one = select(IsEqual(zeros, Filled(1, s.x)), product, Filled(0, s.x));
  return {select(x_zero, if_one, if_none / x), Value{},
          select(u_zero, s.Of(if_one), s.Of(if_none) / updates)};
}

// Elements that are equal to the result share evenly.
Values GradientOfExtreme(const Selection& s, Value y, Value dy) {
  const Value x_ties = OneWhere(IsEqual(s.x, y), s.x);
  const Value u_ties = OneWhere(IsEqual(s.updates, s.Of(y)), s.updates);
  const Value share = dy / max(s.Into(ScatterMode::kAdd, x_ties, u_ties), 1.0);
  return {x_ties * share, Value{}, u_ties * s.Of(share)};
}

}  // namespace

absl::StatusOr<Types> Scatter::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &indices = in[1].shape(), &updates = in[2].shape();
  FORGE_ASSIGN_OR_RETURN(const int64_t a, NormalAxis(axis, in[0].rank()));
  if (mode != ScatterMode::kSet && in[0].dtype() == DType::kBool)
    return InvalidArgument("elements of bool are only set");
  const bool ordered = mode == ScatterMode::kMin || mode == ScatterMode::kMax;
  if (ordered && !Has(kRealTypes, in[0].dtype()))
    return InvalidArgument("{} has no order", Name(in[0].dtype()));
  if (updates.size() != x.size())
    return InvalidArgument("updates have {} axes, x has {}", updates.size(), x.size());
  const std::array shapes = {&indices, &updates};
  const auto all = BroadcastShapes(shapes);
  if (!all.ok() || all->size() != updates.size())
    return InvalidArgument("indices {} do not broadcast to updates {}", ToText(indices),
                           ToText(updates));
  for (size_t d = 0; d < x.size(); ++d) {
    if (updates[d] == Dim(1) && ((*all)[d].min() > 1 || (*all)[d].max() < 1))
      return InvalidArgument("axis {} has {} indices for 1 update", d, (*all)[d].ToText());
    if (static_cast<int64_t>(d) != a && (updates[d] - x[d]).min() > 0)
      return InvalidArgument("axis {} has {} updates for {} elements", d, updates[d].ToText(),
                             x[d].ToText());
  }
  return Types{Type::Tensor(in[0].dtype(), x)};
}

Values Scatter::gradient(const GradArgs& g) const {
  const Selection s(*this, g);
  const Value dy = g.dout[0];
  switch (mode) {
    case ScatterMode::kSet:
      return GradientOfSet(g, s, dy);
    case ScatterMode::kAdd:
      return {dy, Value{}, s.Of(dy)};
    case ScatterMode::kMul:
      return GradientOfProduct(s, dy);
    case ScatterMode::kMin:
    case ScatterMode::kMax:
      break;
  }
  return GradientOfExtreme(s, g.out[0], dy);
}

absl::Status Scatter::evaluate(Eval& e) const {
  const HostValue &x = *e.in(0), &updates = *e.in(2);
  FORGE_ASSIGN_OR_RETURN(const int64_t a, NormalAxis(axis, x.rank()));
  const std::vector<int64_t> targets =
      TargetsOf(x, *e.in(1), updates.shape(), static_cast<size_t>(a));
  if (Has(kFloatTypes, x.dtype()))
    Store(Scattered<double>(mode, Doubles(x), Doubles(updates), targets), e.out(0));
  else if (Has(kComplexTypes, x.dtype()))
    Store(Scattered<std::complex<double>>(mode, Complexes(x), Complexes(updates), targets),
          e.out(0));
  else if (Has(kUnsignedTypes, x.dtype()))
    ScatterIntegers<uint64_t>(mode, targets, e);
  else
    ScatterIntegers<int64_t>(mode, targets, e);
  return absl::OkStatus();
}

Cost Scatter::cost(TypeSpan in) const {
  const bool rounds = mode == ScatterMode::kAdd || mode == ScatterMode::kMul;
  const auto a = NormalAxis(axis, in[0].rank());
  if (!rounds || !a.ok())
    return {.flops = mode == ScatterMode::kSet ? Dim(0) : in[2].elements(), .terms = 0};
  return {.flops = in[2].elements(), .terms = in[2].shape()[static_cast<size_t>(*a)] + 1};
}

Value ScatterNumber(Value x, Value indices, const Dims& updates, int64_t axis,
                    const Number& number) {
  Function& f = *x.fn;
  return f(Scatter{.axis = axis}, {x, indices, f(Fill{number, x.type().dtype(), updates}, {})});
}

Cases Scatter::cases() {
  const auto at = [](int64_t axis, ScatterMode mode) { return Scatter{axis, mode}; };
  constexpr auto kSet = ScatterMode::kSet, kAdd = ScatterMode::kAdd, kMul = ScatterMode::kMul;
  constexpr auto kMin = ScatterMode::kMin, kMax = ScatterMode::kMax;
  return {{at(0, kSet), {"number[5,3]", "i64[4,3] in -7..6", "number[4,3]"}},
          {at(1, kSet), {"bool[2,7,3]", "i32[2,9,2] in -7..6", "bool[2,9,2]"}},
          {at(-1, kSet), {"f32[3,5] edges", "i64[2,3] edges", "f32[2,3] edges"}},
          {at(0, kSet), {"f16[9,6]", "i64[4,1] in -9..8", "f16[4,6]"}},
          {at(0, kSet), {"real[7]", "i32[200] in -9..8", "real[200]"}},
          {at(0, kAdd), {"number[5,3]", "i64[4,3] in -7..6", "number[4,3]"}},
          {at(0, kAdd), {"real[7]", "i32[200] in -9..8", "real[200]"}},
          {at(0, kAdd), {"float[3]", "i32[500] in 0..3", "float[500] in -1e3..1e3"}},
          {at(1, kAdd), {"f32[2,4,33]", "i64[1,9,1] in 0..3", "f32[2,9,33]"}},
          {at(-2, kAdd), {"f16[2,6,5]", "i64[2,700,1] in -6..5", "f16[2,700,5]"}},
          {at(0, kMul), {"number[5,3]", "i64[4,3] in -7..6", "number[4,3]"}},
          {at(0, kMul), {"f64[4,2]", "i64[5,1] in 0..2", "f64[5,2] in -1..1"}},
          {at(0, kMul), {"real[9]", "i64[31] in 0..8", "real[31] in -2..2"}},
          {at(1, kMin), {"real[2,7,3]", "i32[2,9,2] in -7..6", "real[2,9,2]"}},
          {at(0, kMin), {"real[7] edges", "i32[200] in -9..8", "real[200] edges"}},
          {at(1, kMax), {"real[2,7,3]", "i32[2,9,2] in -7..6", "real[2,9,2]"}},
          {at(0, kMax), {"real[7] edges", "i32[200] in -9..8", "real[200] edges"}},
          {at(0, kAdd), {"f32[1]", "i64[3] in -1..0", "f32[3]"}},
          {at(1, kAdd), {"f32[2,3]", "i64[2,0]", "f32[2,0]"}},
          {at(0, kSet), {"f32[0]", "i64[2] in -1..1", "f32[2]"}},
          {at(2, kMax), {"i8[2,1,5,2,1]", "i64[1,1,4,1,1] in 0..4", "i8[2,1,4,2,1]"}},
          {.op = at(0, kAdd),
           .in = {"f32[16777216]", "i32[16777216] in 0..16777215", "f32[16777216]"},
           .bench = true},
          {.op = at(0, kAdd),
           .in = {"f32[30522,384]", "i64[4096,1] in 0..30521", "f32[4096,384]"},
           .bench = true},
          {.op = at(1, kSet),
           .in = {"f32[4096,4096]", "i32[4096,4096] in 0..4095", "f32[4096,4096]"},
           .bench = true},
          {at(2, kSet), {"f32[2,3]", "i64[2,3]", "f32[2,3]"}, "axis 2 is outside rank 2"},
          {at(0, kAdd), {"bool[3]", "i64[2]", "bool[2]"}, "bool are only set"},
          {at(0, kMax), {"c64[3]", "i64[2]", "c64[2]"}, "c64 has no order"},
          {at(0, kSet), {"f32[2,3]", "i64[2]", "f32[2]"}, "updates have 1 axes, x has 2"},
          {at(0, kSet), {"f32[2,3]", "i64[2,4]", "f32[2,3]"}, "do not broadcast to updates"},
          {at(0, kSet), {"f32[2,3]", "i64[5,4]", "f32[5,4]"}, "axis 1 has 4 updates for 3"},
          {at(0, kSet), {"f32[2,3]", "f32[2,3]", "f32[2,3]"}, "indices"}};
}

FORGE_DEFINE_OP(Scatter)

}  // namespace forge::ir
