// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/sampling/grid_sample.h"

#include <array>

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/broadcast_to.h"

namespace forge::ir {
namespace {

Value Conjunction(Value a, Value b) { return a ? (*a.fn)(And{}, {a, b}) : b; }
Value FloorOf(Value v) { return (*v.fn)(Floor{}, {v}); }
Value RoundedPlace(Value v) { return (*v.fn)(Round{}, {v}); }

// The elements of x at computed places. Coordinates have the shape [n, 1, places]; the first
// belongs to the first spatial axis.
class Sampler {
 public:
  Sampler(const GridSample& op, Value x) : op_(op), shape_(x.type().shape()), x_(x) {
    const Dims planes{shape_[0], shape_[1], Product(Dims(shape_.begin() + 2, shape_.end()))};
    x_ = (*x.fn)(Reshape{planes}, {x});
  }
  size_t axes() const { return shape_.size() - 2; }

  // The coordinate of an axis in elements, from one in -1..1.
  Value InElements(Value v, size_t axis) const {
    const Value size = DimValue(shape_[2 + axis], v);
    return op_.align_corners ? (v + 1) * 0.5 * (size - 1) : ((v + 1) * size - 1) * 0.5;
  }

  // Moves a coordinate into x where the padding says so.
  Value Padded(Value v, size_t axis) const {
    if (op_.padding == SamplePadding::kZeros) return v;
    const Value size = DimValue(shape_[2 + axis], v);
    if (op_.padding == SamplePadding::kReflection) v = Reflected(v, size);
    return max(min(v, size - 1), 0.0);
  }

  // The elements at whole coordinates; 0 outside.
  Value At(std::span<const Value> place) const {
    Value flat, inside;
    for (size_t a = 0; a < axes(); ++a) {
      const Value size = DimValue(shape_[2 + a], place[a]);
      inside = Conjunction(Conjunction(inside, place[a] > -1.0), place[a] < size);
      const Value index = convert(place[a], DType::kI32);
      flat = flat ? flat * DimValue(shape_[2 + a], flat) + index : index;
    }
    flat = select(inside, flat, DimValue(x_.type().shape()[2], flat));
    Dims each = flat.type().shape();
    each[1] = shape_[1];
    Function& f = *x_.fn;
    return f(GatherElements{.axis = 2}, {x_, f(BroadcastTo{each}, {flat})});
  }

 private:
  // Mirrors at both edges, as often as needed.
  Value Reflected(Value v, Value size) const {
    const double low = op_.align_corners ? 0 : -0.5;
    const Value span = op_.align_corners ? max(size - 1, 1.0) : size;
    const Value from = abs(v - low), flips = FloorOf(from / span), extra = from - flips * span;
    const Value half = flips * 0.5;
    return select((*v.fn)(Equal{}, {half, FloorOf(half)}), extra, span - extra) + low;
  }

  const GridSample& op_;
  Dims shape_;
  Value x_;
};

// Between the two neighbours along each axis.
Value LinearSample(const Sampler& s, std::span<const Value> at) {
  Value sum;
  for (size_t corner = 0; corner < size_t{1} << s.axes(); ++corner) {
    Values place;
    Value weight;
    for (size_t a = 0; a < s.axes(); ++a) {
      const Value low = FloorOf(at[a]), part = at[a] - low;
      const bool upper = (corner >> a & 1) != 0;
      place.push_back(upper ? low + 1 : low);
      const Value share = upper ? part : 1 - part;
      weight = weight ? weight * share : share;
    }
    const Value term = s.At(place) * weight;
    sum = sum ? sum + term : term;
  }
  return sum;
}

// The weights of the elements at -1, 0, 1 and 2 from the one below, of Keys' kernel.
std::array<Value, 4> CubicWeights(Value t) {
  constexpr double kA = -0.75;
  const auto near = [](Value x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](Value x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

Value CubicSample(const Sampler& s, std::span<const Value> at) {
  const Value row = FloorOf(at[0]), column = FloorOf(at[1]);
  const auto rows = CubicWeights(at[0] - row), columns = CubicWeights(at[1] - column);
  Value sum;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const std::array place = {s.Padded(row + (i - 1), 0), s.Padded(column + (j - 1), 1)};
      const Value weight = rows[static_cast<size_t>(i)] * columns[static_cast<size_t>(j)];
      const Value term = s.At(place) * weight;
      sum = sum ? sum + term : term;
    }
  return sum;
}

}  // namespace

absl::StatusOr<Types> GridSample::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &grid = in[1].shape();
  const size_t axes = x.size() - 2;
  if (axes < 2 || axes > 3) return InvalidArgument("{} spatial axes, not 2 or 3", axes);
  if (grid.size() != axes + 2 || !Unify(grid.back(), Dim(static_cast<int64_t>(axes))).ok())
    return InvalidArgument("grid {} for {} spatial axes", ToText(grid), axes);
  if (kind == SampleKind::kCubic && axes != 2)
    return InvalidArgument("cubic interpolation of {} axes", axes);
  for (size_t a = 0; a < axes; ++a)
    if (x[2 + a].max() < 1) return InvalidArgument("axis {} has no element", 2 + a);
  Dims out{x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  return Types{Type::Tensor(in[0].dtype(), std::move(out))};
}

Values GridSample::decompose(Function& f, ValueSpan in) const {
  const Type x = in[0].type(), grid = in[1].type();
  const std::array types = {x, grid};
  const auto out = infer(types);
  if (!out.ok()) return f.Fail(out.status()), Values{in[0]};
  const Sampler sampler(*this, Widened(in[0]));
  const Value places = Widened(in[1]);
  const Dims each{x.shape()[0], 1, Product(Dims(grid.shape().begin() + 1, grid.shape().end() - 1))};
  Values at;
  for (size_t a = 0; a < sampler.axes(); ++a) {
    const auto k = static_cast<int64_t>(sampler.axes() - 1 - a);
    const Value one = f(Slice{.begin = {k}, .end = {k + 1}, .axes = {-1}}, {places});
    const Value v = sampler.InElements(f(Reshape{each}, {one}), a);
    at.push_back(kind == SampleKind::kCubic ? v : sampler.Padded(v, a));
  }
  if (kind == SampleKind::kNearest)
    for (Value& v : at) v = RoundedPlace(v);
  const Value y = kind == SampleKind::kNearest  ? sampler.At(at)
                  : kind == SampleKind::kLinear ? LinearSample(sampler, at)
                                                : CubicSample(sampler, at);
  return {Narrowed(f(Reshape{(*out)[0].shape()}, {y}), x.dtype())};
}

Cases GridSample::cases() {
  constexpr auto kNearest = SampleKind::kNearest;
  constexpr auto kCubic = SampleKind::kCubic;
  constexpr auto kBorder = SamplePadding::kBorder;
  constexpr auto kReflection = SamplePadding::kReflection;
  return {
      {GridSample{}, {"float[2,3,4,5]", "float[2,3,2,2] in -1.3..1.3"}},
      {GridSample{.padding = kBorder, .align_corners = true},
       {"f64[1,2,4,3]", "f64[1,2,3,2] in -2..2"}},
      {GridSample{.padding = kReflection}, {"f64[1,1,3,4]", "f64[1,4,4,2] in -4..4"}},
      {GridSample{.padding = kReflection, .align_corners = true},
       {"f32[1,2,3,4]", "f32[1,4,4,2] in -4..4"}},
      {GridSample{.align_corners = true}, {"f64[1,2,2,3,2]", "f64[1,2,1,2,3] in -1.2..1.2"}},
      {GridSample{.padding = kBorder}, {"f32[2,1,2,3,2]", "f32[2,2,1,2,3] in -1.2..1.2"}},
      {GridSample{.kind = kNearest}, {"float[2,3,4,5]", "float[2,3,2,2] in -1.3..1.3"}},
      {GridSample{.kind = kNearest, .padding = kReflection, .align_corners = true},
       {"f64[1,2,3,3]", "f64[1,5,2,2] in -3..3"}},
      {GridSample{.kind = kCubic}, {"float[1,2,5,4]", "float[1,3,2,2] in -1.3..1.3"}},
      {GridSample{.kind = kCubic, .padding = kReflection},
       {"f64[1,1,4,3]", "f64[1,3,3,2] in -2..2"}},
      {GridSample{.kind = kCubic, .padding = kBorder, .align_corners = true},
       {"f64[1,1,3,4]", "f64[1,3,3,2] in -2..2"}},
      {GridSample{.align_corners = true}, {"f32[1,1,1,1]", "f32[1,2,3,2] in -2..2"}},
      {GridSample{}, {"f32[1,2,3,4]", "f32[1,0,3,2]"}},
      {GridSample{}, {"f32[0,2,3,4]", "f32[0,2,3,2]"}},
      {.op = GridSample{}, .in = {"f32[1,32,256,256]", "f32[1,256,256,2] in -1..1"}, .bench = true},
      {GridSample{}, {"f32[1,2,3]", "f32[1,2,1]"}, "1 spatial axes, not 2 or 3"},
      {GridSample{}, {"f32[1,2,3,4]", "f32[1,2,2,3]"}, "for 2 spatial axes"},
      {GridSample{}, {"f32[1,2,0,4]", "f32[1,2,2,2]"}, "axis 2 has no element"},
      {GridSample{.kind = kCubic},
       {"f32[1,1,2,2,2]", "f32[1,1,1,1,3]"},
       "cubic interpolation of 3 axes"}};
}

FORGE_DEFINE_OP(GridSample)

}  // namespace forge::ir
