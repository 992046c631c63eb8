// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/resize.h"

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/strided_gather.h"

namespace forge::ir {
namespace {

using Ratio = ResizeRatio;

Ratio RatioOf(const Resize& op, size_t axis, size_t entry, const Dim& extent) {
  const Dim& size = op.sizes[entry];
  const Dim p = op.numerators.empty() ? size : op.numerators[entry];
  const Dim q = op.numerators.empty() ? extent : op.denominators[entry];
  Ratio r{axis, extent, size, q, 0, p};
  if (op.coordinates == ResizeCoordinates::kAlignCorners) {
    r.step = extent - 1;
    r.divisor = Max(size - 1, 1);
  } else if (op.coordinates != ResizeCoordinates::kAsymmetric) {
    const bool zero_alone = op.coordinates == ResizeCoordinates::kPytorchHalfPixel;
    r.step = q * 2;
    r.shift = (q - p) * (zero_alone ? Min(1, Max(size - 1, 0)) : Dim(1));
    r.divisor = p * 2;
  }
  r.divisor = Max(r.divisor, 1);
  return r;
}

// ---- decomposition ------------------------------------------------------------------------------

Ratio Rounded(Ratio r, ResizeRounding rounding) {
  if (rounding == ResizeRounding::kFloor) return r;
  if (rounding == ResizeRounding::kCeil) {
    r.shift = r.shift + r.divisor - 1;
    return r;
  }
  r.step = r.step * 2;
  r.shift = r.shift * 2 + r.divisor - (rounding == ResizeRounding::kPreferFloor ? 1 : 0);
  r.divisor = r.divisor * 2;
  return r;
}

// The elements `tap` beyond those at or before each place.
Value Tap(Function& f, Value x, const Ratio& r, int64_t tap) {
  return f(StridedGather{.axis = static_cast<int64_t>(r.axis),
                         .size = r.size,
                         .step = r.step,
                         .shift = r.shift + r.divisor * tap,
                         .divisor = r.divisor},
           {x});
}

// How far beyond an element each place lies, 0 to 1; broadcasts along the axis.
Value Fraction(Function& f, Value x, const Ratio& r) {
  const DType t = x.type().dtype();
  const Value rest =
      f(Iota{.dtype = t, .begin = r.shift, .step = r.step, .count = r.size, .modulus = r.divisor},
        {});
  const Value whole = f(Iota{.dtype = t, .begin = r.divisor, .count = 1}, {});
  const Value share = rest / whole;
  Dims shape(x.type().shape().size() - r.axis, 1);
  shape[0] = r.size;
  return f(Reshape{shape}, {share});
}

// An element that has no share does not count, even where it is infinite.
Value Linear(Function& f, Value x, const Ratio& r) {
  const Value low = Tap(f, x, r, 0);
  const Value high = Tap(f, x, r, 1);
  const Value t = Fraction(f, x, r);
  const Value rest = 1 - t;
  const Value kept = low * rest;
  return select(t > 0.0, kept + high * t, low);
}

// Keys, "Cubic convolution interpolation for digital image processing", 1981.
Value Near(Value d, double a) { return ((a + 2) * d - (a + 3)) * d * d + 1; }
Value Far(Value d, double a) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; }

Value Cubic(Function& f, Value x, const Ratio& r, double a) {
  const Value t = Fraction(f, x, r);
  const Value back = 1 - t;
  const Value at = Tap(f, x, r, 0);
  Value y = Tap(f, x, r, -1) * Far(t + 1, a);
  y = y + at * Near(t, a);
  y = y + Tap(f, x, r, 1) * Near(back, a);
  y = y + Tap(f, x, r, 2) * Far(back + 1, a);
  return select(t > 0.0, y, at);
}

}  // namespace

absl::StatusOr<std::vector<ResizeRatio>> RatiosOf(const Resize& op, const Dims& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  const size_t n = op.sizes.size();
  if ((!op.axes.empty() && op.axes.size() != n) || n > shape.size() ||
      op.numerators.size() != op.denominators.size() ||
      (!op.numerators.empty() && op.numerators.size() != n))
    return InvalidArgument("{} sizes, {} axes and {} scales do not match rank {}", n,
                           op.axes.size(), op.numerators.size(), rank);
  FORGE_RETURN_IF_ERROR(NormalAxes(op.axes, rank).status());
  std::vector<ResizeRatio> out;
  for (size_t i = 0; i < n; ++i) {
    const int64_t given = op.axes.empty() ? static_cast<int64_t>(i) : op.axes[i];
    FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(given, rank));
    const size_t a = static_cast<size_t>(along);
    const bool scaled = !op.numerators.empty();
    if (op.sizes[i].max() < 0) return InvalidArgument("a size of {}", op.sizes[i].ToText());
    if (scaled && (op.numerators[i].max() < 1 || op.denominators[i].max() < 1))
      return InvalidArgument("a scale of {} / {}", op.numerators[i].ToText(),
                             op.denominators[i].ToText());
    if (shape[a].max() < 1 && op.sizes[i].min() > 0) return InvalidArgument("nothing to resize");
    out.push_back(RatioOf(op, a, i, shape[a]));
  }
  return out;
}

absl::StatusOr<Types> Resize::infer(TypeSpan in) const {
  if (kind != ResizeKind::kNearest && !Has(kFloatTypes, in[0].dtype()))
    return InvalidArgument("{} is interpolated only as floats", Name(in[0].dtype()));
  FORGE_ASSIGN_OR_RETURN(const std::vector<Ratio> ratios, RatiosOf(*this, in[0].shape()));
  Dims shape = in[0].shape();
  for (const Ratio& r : ratios) shape[r.axis] = r.size;
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

Values Resize::decompose(Function& f, ValueSpan in) const {
  const DType t = in[0].type().dtype();
  const auto ratios = RatiosOf(*this, in[0].type().shape());
  if (!ratios.ok()) return f.Fail(ratios.status()), Values{in[0]};
  const bool nearest = kind == ResizeKind::kNearest;
  Value y = nearest ? in[0] : Widened(in[0]);
  for (const Ratio& r : *ratios) {
    if (nearest)
      y = Tap(f, y, Rounded(r, rounding), 0);
    else
      y = kind == ResizeKind::kLinear ? Linear(f, y, r) : Cubic(f, y, r, cubic);
  }
  return {nearest ? y : Narrowed(y, t)};
}

Cases Resize::cases() {
  using K = ResizeKind;
  using C = ResizeCoordinates;
  using R = ResizeRounding;
  const auto images = [](K k, C c, R r, Dims sizes, std::vector<std::string> in) {
    return Case{
        Resize{
            .kind = k, .coordinates = c, .rounding = r, .axes = {2, 3}, .sizes = std::move(sizes)},
        std::move(in)};
  };
  Cases all;
  for (C c : {C::kHalfPixel, C::kPytorchHalfPixel, C::kAlignCorners, C::kAsymmetric}) {
    for (R r : {R::kPreferFloor, R::kPreferCeil, R::kFloor, R::kCeil})
      all.push_back(images(K::kNearest, c, r, {7, 3}, {"f32[1,2,3,5]"}));
    for (K k : {K::kLinear, K::kCubic}) {
      all.push_back(images(k, c, R::kFloor, {7, 3}, {"float[1,2,3,5]"}));
      all.push_back(images(k, c, R::kFloor, {1, 13}, {"f32[2,1,4,6]"}));
    }
  }
  const Cases more = {
      images(K::kNearest, C::kAsymmetric, R::kFloor, {6, 10}, {"real|bool[1,2,3,5]"}),
      images(K::kLinear, C::kHalfPixel, R::kFloor, {5, 4}, {"f32[1,2,1,1]"}),
      images(K::kCubic, C::kHalfPixel, R::kFloor, {1, 1}, {"f32[1,2,5,1]"}),
      images(K::kLinear, C::kHalfPixel, R::kFloor, {0, 4}, {"f32[1,2,3,3]"}),
      images(K::kLinear, C::kHalfPixel, R::kFloor, {0, 4}, {"f32[1,2,0,3]"}),
      {Resize{
           .kind = K::kLinear, .axes = {-1}, .sizes = {8}, .numerators = {5}, .denominators = {3}},
       {"f32[3,5]"}},
      {Resize{.kind = K::kCubic, .sizes = {4, 9}, .cubic = -0.5}, {"f32[4,5]"}},
      {Resize{.sizes = {3, 9}}, {"f32[4,5,2]"}},
      {Resize{}, {"f32[4,5]"}},
      {.op = Resize{.kind = K::kLinear, .axes = {2, 3}, .sizes = {320, 320}},
       .in = {"f32[1,24,160,160]"},
       .bench = true},
      {.op = Resize{.kind = K::kCubic, .axes = {2, 3}, .sizes = {320, 320}},
       .in = {"f32[1,24,160,160]"},
       .bench = true},
      {Resize{.kind = K::kLinear, .sizes = {3}}, {"i32[4]"}, "only as floats"},
      {Resize{.axes = {2}, .sizes = {3}}, {"f32[4]"}, "axis 2 is outside rank 1"},
      {Resize{.axes = {0, 1}, .sizes = {3}}, {"f32[4,4]"}, "do not match"},
      {Resize{.sizes = {-3}}, {"f32[4]"}, "size of -3"},
      {Resize{.sizes = {3}, .numerators = {0}, .denominators = {1}}, {"f32[4]"}, "scale of 0 / 1"},
      {Resize{.sizes = {3}}, {"f32[0]"}, "nothing to resize"}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

FORGE_DEFINE_OP(Resize)

}  // namespace forge::ir
