// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/pooling/window_taps.h"

#include <limits>

#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/strided_gather.h"

namespace forge::ir {
namespace {

// The numbers begin, begin + step .. along the axis, of which there is one for each window.
Value ForEachWindow(Function& f, const TapAxis& a, const Iota& numbers, int64_t rank) {
  Dims shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(a.axis)] = a.places;
  return f(Reshape{std::move(shape)}, {f(numbers, {})});
}

Iota Dividends(const TapAxis& a, const Dim& begin) {
  return {.dtype = DType::kI32, .begin = begin, .step = a.step, .count = a.places};
}

Value Quotients(Function& f, const TapAxis& a, const Dim& begin, int64_t rank) {
  const Value v = ForEachWindow(f, a, Dividends(a, begin), rank);
  return a.divisor == Dim(1) ? v : div_floor(v, DimValue(a.divisor, v));
}

// Conditions may be null, which is true.
Value BothHold(Value a, Value b) { return !a ? b : !b ? a : (*a.fn)(And{}, {a, b}); }
Value EitherHolds(Value a, Value b) { return a && b ? (*a.fn)(Or{}, {a, b}) : Value{}; }
Value Where(Value condition, Value v, double other) {
  return condition ? select(condition, v, other) : v;
}

// Is tap t of every window an element of an axis of this extent?
bool AlwaysExists(const TapAxis& a, int64_t t, const Dim& extent) {
  if (a.end || (a.whole && !(a.divisor == Dim(1)))) return false;
  const Dim first = a.shift + a.spread * t, last = (a.places - 1) * a.step + first;
  const Dim least = FloorDiv(first, a.divisor), most = FloorDiv(last, a.divisor);
  return least.is_constant() && least.constant() >= 0 && (extent - most).min() > 0;
}

}  // namespace

std::vector<TapAxis> TapAxes(const Window& window, std::span<const int64_t> kernel,
                             const Dims& places) {
  std::vector<TapAxis> out;
  for (size_t a = 0; a < window.size(); ++a)
    out.push_back({.axis = static_cast<int64_t>(a) + 2,
                   .places = places[2 + a],
                   .taps = kernel[a],
                   .step = window[a].stride,
                   .spread = window[a].dilation,
                   .shift = -window[a].before});
  return out;
}

TapAxis Reversed(const TapAxis& a, const Dim& extent) {
  return {.axis = a.axis,
          .places = extent,
          .taps = a.taps,
          .step = 1,
          .spread = 0 - a.spread,
          .shift = 0 - a.shift,
          .divisor = a.step,
          .whole = true};
}

TapAxis ReversedByWindow(const TapAxis& a, const Dim& extent) {
  const int64_t stride = a.step.constant();
  return {.axis = a.axis,
          .places = extent,
          .taps = (a.taps + stride - 1) / stride,
          .step = 1,
          .spread = -stride,
          .shift = 0 - a.shift,
          .divisor = stride};
}

Value LoadTap(Value x, const TapAxis& a, int64_t t) {
  return (*x.fn)(StridedGather{.axis = a.axis,
                               .size = a.places,
                               .step = a.step,
                               .shift = a.shift + a.spread * t,
                               .divisor = a.divisor},
                 {x});
}

Value TapPosition(Function& f, const TapAxis& a, int64_t t, int64_t rank) {
  return Quotients(f, a, a.shift + a.spread * t, rank);
}

Value TapExists(Function& f, const TapAxis& a, int64_t t, const Type& x) {
  if (AlwaysExists(a, t, x.shape()[static_cast<size_t>(a.axis)])) return {};
  const Value position = TapPosition(f, a, t, x.rank());
  Value exists = IsInside(position, x.shape()[static_cast<size_t>(a.axis)]);
  if (a.end) exists = BothHold(exists, position < Quotients(f, a, *a.end, x.rank()));
  if (a.whole && !(a.divisor == Dim(1))) {
    Iota rests = Dividends(a, a.shift + a.spread * t);
    rests.modulus = a.divisor;
    exists = BothHold(exists, ForEachWindow(f, a, rests, x.rank()) < 1.0);
  }
  return exists;
}

Value SumOfTaps(Value x, std::span<const TapAxis> axes) {
  Function& f = *x.fn;
  for (const TapAxis& a : axes)
    if (!CanWriteOut(f, a.taps)) return x;
  for (size_t k = axes.size(); k-- > 0;) {
    Value sum;
    for (int64_t t = 0; t < axes[k].taps; ++t) {
      const Value tap = Where(TapExists(f, axes[k], t, x.type()), LoadTap(x, axes[k], t), 0.0);
      sum = sum ? sum + tap : tap;
    }
    x = sum;
  }
  return x;
}

Value CountOfTaps(Value x, std::span<const TapAxis> axes, DType t,
                  std::span<const int64_t> padded) {
  Function& f = *x.fn;
  Value all;
  for (const TapAxis& a : axes)
    if (!CanWriteOut(f, a.taps)) return x;
  for (size_t k = 0; k < axes.size(); ++k) {
    Value count;
    for (int64_t tap = 0; tap < axes[k].taps; ++tap) {
      const Dim& extent = x.type().shape()[static_cast<size_t>(axes[k].axis)];
      Value exists;
      if (padded.empty()) {
        exists = TapExists(f, axes[k], tap, x.type());
      } else {
        const Value position = TapPosition(f, axes[k], tap, x.type().rank());
        exists = position < DimValue(extent + padded[k], position);
      }
      const Value one = exists ? convert(exists, t) : f(Fill{1, t, {}}, {});
      count = count ? count + one : one;
    }
    all = all ? all * count : count;
  }
  return all;
}

int64_t TermsOf(std::span<const TapAxis> axes) {
  int64_t terms = 1;
  for (const TapAxis& a : axes) terms *= std::min<int64_t>(a.taps, kMostSteps);
  return terms;
}

Value SumWhereIndexed(Value v, Value index, std::span<const TapAxis> axes, const Dims& shape) {
  Function& f = *v.fn;
  const auto rank = static_cast<int64_t>(shape.size());
  Value own;  // the index of an element
  Dim stride = 1;
  for (size_t k = axes.size(); k-- > 0;) {
    const Iota count{.dtype = DType::kI32, .count = axes[k].places};
    Value at = ForEachWindow(f, axes[k], count, rank);
    if (!(stride == Dim(1))) at = at * DimValue(stride, at);
    own = own ? own + at : at;
    stride = stride * shape[static_cast<size_t>(axes[k].axis)];
  }
  Value sum;
  for (int64_t term = 0; term < TermsOf(axes); ++term) {
    Value its = index, tap = v, exists;
    int64_t rest = term;
    for (const TapAxis& a : axes) {
      const int64_t t = rest % a.taps;
      rest /= a.taps;
      const Value inside = TapExists(f, a, t, its.type());
      its = LoadTap(its, a, t), tap = LoadTap(tap, a, t);
      exists = BothHold(exists, inside);
    }
    const Value takes = BothHold(exists, f(Equal{}, {its, own}));
    const Value added = select(takes, tap, 0.0);
    sum = sum ? sum + added : added;
  }
  return sum;
}

LargestTaps LargestOfTaps(Value x, std::span<const TapAxis> axes) {
  Function& f = *x.fn;
  const Dims shape = x.type().shape();
  LargestTaps best{.value = x, .index = {}};
  Dim stride = 1;
  for (const TapAxis& a : axes)
    if (!CanWriteOut(f, a.taps)) return {x, x};
  for (size_t k = axes.size(); k-- > 0;) {
    const TapAxis& a = axes[k];
    const LargestTaps from = best;
    Value exists_before;
    for (int64_t t = 0; t < a.taps; ++t) {
      const Value value = LoadTap(from.value, a, t);
      const Value exists = TapExists(f, a, t, from.value.type());
      const Value position = TapPosition(f, a, t, x.type().rank());
      Value index = stride == Dim(1) ? position : position * DimValue(stride, position);
      if (from.index) index = index + LoadTap(from.index, a, t);
      if (t == 0) {
        best = {Where(exists, value, -std::numeric_limits<double>::infinity()), index};
        exists_before = exists;
        continue;
      }
      const Value is_nan = f(Not{}, {f(Equal{}, {value, value})});
      Value wins = EitherHolds(value > best.value, is_nan);
      if (exists_before) wins = EitherHolds(f(Not{}, {exists_before}), wins);
      const Value takes = BothHold(exists, wins);
      best = {select(takes, value, best.value), select(takes, index, best.index)};
      exists_before = EitherHolds(exists_before, exists);
    }
    stride = stride * shape[static_cast<size_t>(a.axis)];
  }
  Dims out = shape;
  for (const TapAxis& a : axes) out[static_cast<size_t>(a.axis)] = a.places;
  const Value index = f(BroadcastTo{std::move(out)}, {best.index});
  return {best.value, convert(index, DType::kI64)};
}

}  // namespace forge::ir
