// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/fft/axis_transform.h"

#include <cmath>

#include "ir/ops/creation/iota.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/fft/dft.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/pad.h"

namespace forge::ir {
double FftDivisor(FftNorm norm, bool inverse, double n) {
  if (norm == FftNorm::kOrtho) return std::sqrt(n);
  return norm == (inverse ? FftNorm::kBackward : FftNorm::kForward) ? n : 1;
}

AxisTransform::AxisTransform(Function& f, FftOptions options)
    : f_(f), options_(std::move(options)) {
  if (!options_.sizes.empty() && options_.sizes.size() != options_.axes.size())
    f.Fail(InvalidArgument("there are {} sizes for {} axes", options_.sizes.size(),
                           options_.axes.size()));
  if (options_.axes.empty()) f.Fail(InvalidArgument("there are no axes"));
}

bool AxisTransform::Fits(Value x) {
  if (!f_.status().ok()) return false;
  auto axes = NormalAxes(options_.axes, x.type().rank());
  if (!axes.ok()) return f_.Fail(axes.status()), false;
  for (int64_t& axis : options_.axes)
    if (axis < 0) axis += x.type().rank();
  return true;
}

Dim AxisTransform::SizeOf(size_t i, const Dim& standing) {
  const Dim size = options_.sizes.empty() ? standing : options_.sizes[i];
  if (size.max() > 0) return size;
  f_.Fail(InvalidArgument("axis {} has {} elements, not at least one", options_.axes[i],
                          size.ToText()));
  return 1;
}

Dim AxisTransform::SizeOf(size_t i, Value x) {
  return SizeOf(i, x.type().shape()[static_cast<size_t>(options_.axes[i])]);
}

Value AxisTransform::Resized(Value x, int64_t axis, const Dim& size) {
  if (!x) return x;
  const Dims& shape = x.type().shape();
  const Dim& standing = shape[static_cast<size_t>(axis)];
  if (standing == size) return x;
  Pad op{.before = Dims(shape.size(), 0), .after = Dims(shape.size(), 0)};
  op.after[static_cast<size_t>(axis)] = size - standing;  // negative: cut
  return f_(op, {x});
}

Value AxisTransform::Scaled(Value x, const Dim& size) {
  if (size.is_constant()) {
    const auto n = static_cast<double>(size.constant());
    const double divisor = FftDivisor(options_.norm, options_.inverse, n);
    return divisor == 1 ? x : x * (1 / divisor);
  }
  if (FftDivisor(options_.norm, options_.inverse, 2) == 1) return x;
  const Value count = f_(Iota{.begin = size, .count = 1}, {});
  const Value n = convert(count, x.type().dtype());
  return x / (options_.norm == FftNorm::kOrtho ? sqrt(n) : n);
}

ComplexParts AxisTransform::Along(ComplexParts x, size_t i, const Dim& size) {
  const int64_t axis = options_.axes[i];
  if (!f_.status().ok()) return x;
  const Value re = Resized(x.re, axis, size), im = Resized(x.im, axis, size);
  const Values y = f_.Add(Dft{.axis = axis, .inverse = options_.inverse}, Values{re, im});
  if (!f_.status().ok()) return {y[0], y[0]};
  const Value y_re = Scaled(y[0], size);
  return {y_re, Scaled(y[1], size)};
}

ComplexParts AxisTransform::All(ComplexParts x) {
  if (!Fits(x.re)) return x;
  for (size_t i = 0; i < options_.axes.size() && f_.status().ok(); ++i)
    x = Along(x, i, SizeOf(i, x.re));
  return x;
}

ComplexParts AxisTransform::OfReal(Value x) {
  ComplexParts y{x, {}};
  if (!Fits(x)) return y;
  const size_t last = options_.axes.size() - 1;
  const Dim size = SizeOf(last, x);
  if (!f_.status().ok()) return y;
  y = Along(y, last, size);
  if (!f_.status().ok()) return y;
  const Slice half{.begin = {0}, .end = {FloorDiv(size, 2) + 1}, .axes = {options_.axes[last]}};
  const Value re = f_(half, {y.re});
  y = {re, f_(half, {y.im})};
  for (size_t i = last; i-- > 0 && f_.status().ok();) y = Along(y, i, SizeOf(i, y.re));
  return y;
}

Value AxisTransform::ToReal(ComplexParts x) {
  if (!Fits(x.re)) return x.re;
  const size_t last = options_.axes.size() - 1;
  const int64_t axis = options_.axes[last];
  for (size_t i = 0; i < last && f_.status().ok(); ++i) x = Along(x, i, SizeOf(i, x.re));
  if (!f_.status().ok()) return x.re;
  const Dim standing = x.re.type().shape()[static_cast<size_t>(axis)];
  const Dim size = SizeOf(last, (standing - 1) * 2), half = FloorDiv(size, 2) + 1;
  if (!f_.status().ok()) return x.re;
  // The second half has the conjugates of elements size - half down to 1.
  const Slice mirrored{.begin = {size - half}, .end = {0}, .axes = {axis}, .steps = {-1}};
  const auto whole = [&](Value v, bool negative) {
    const Value first = Resized(v, axis, half);
    const Value rest = f_(mirrored, {first});
    return f_(Concat{.axis = axis}, {first, negative ? -rest : rest});
  };
  const Value re = whole(x.re, false);
  return Along({re, whole(x.im, true)}, last, size).re;
}

}  // namespace forge::ir
