// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/sampling/roi_align.h"

#include <array>

#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/transpose.h"

namespace forge::ir {
namespace {

// The points of all boxes along one axis, [r, bins * samples]: the elements below and above, and
// the shares of both, which are 0 where the point lies too far outside.
struct AxisPoints {
  Value low, high, low_share, high_share;
};

struct BoxPoints {
  Value at;      // from the beginning of the box
  Value weight;  // of what is at it; absent: as much as any other
};

// Of boxes of these lengths, [r, 1].
BoxPoints PointsOfBoxes(const RoiAlign& op, Value length, int64_t bins) {
  Function& f = *length.fn;
  const DType t = length.type().dtype();
  const Value i = Along(f, DType::kI32, bins * op.samples, 1, 2);
  const auto size = static_cast<double>(bins), most = static_cast<double>(op.samples);
  if (!op.adaptive) return {(convert(i, t) + 0.5) * (length / (size * most)), {}};
  // ceil(length / size), whichever way a device rounds the quotient.
  const Value near = f(Floor{}, {length / size + 0.5});
  const Value count = min(select(near * size < length, near + 1, near), most);
  const Value bin = i / most, k = convert(i - bin * most, t);
  const Value whole = max(count, 1.0);
  // A point too many repeats the last one, which leaves extremes as they are.
  const Value at = convert(bin, t) + (min(k, whole - 1) + 0.5) / whole;
  const Value weight = op.largest ? convert(count > 0.0, t) : select(k < count, 1.0 / whole, 0.0);
  return {at * (length / size), weight};
}

AxisPoints PointsAlong(const RoiAlign& op, Value rois, size_t axis, const Dim& extent) {
  Function& f = *rois.fn;
  const auto first = axis == 0 ? int64_t{1} : int64_t{0};  // boxes list the last axis first
  const auto corner = [&](int64_t k) {
    return f(Slice{.begin = {k}, .end = {k + 1}, .axes = {1}}, {rois}) * op.scale;
  };
  const double offset = op.half_pixel ? 0.5 : 0;
  const Value begin = corner(first) - offset;
  const Value given = corner(first + 2) - offset - begin;
  const Value length = op.half_pixel ? given : max(given, 1.0);
  const BoxPoints points = PointsOfBoxes(op, length, op.sizes[axis]);
  const Value at = begin + points.at;
  const Value size = DimValue(extent, at);
  const Value counts = f(And{}, {f(Not{}, {at < -1.0}), f(Not{}, {at > size})});
  const Value inside = min(max(at, 0.0), size - 1);
  const Value low = f(Floor{}, {inside}), part = inside - low;
  const auto counted = [&](Value share) {
    const Value part_of_point = select(counts, share, 0.0);
    return points.weight ? part_of_point * points.weight : part_of_point;
  };
  return {low, min(low + 1, size - 1), counted(1 - part), counted(part)};
}

// [r, points] as [r, points, 1] or [r, 1, points].
Value OnImage(Value v, size_t axis) {
  const Dims& shape = v.type().shape();
  Dims out{shape[0], 1, 1};
  out[1 + axis] = shape[1];
  return (*v.fn)(Reshape{std::move(out)}, {v});
}

// Images whose elements lie in one row for each channel, [c, n * h * w], and where those of the
// image of each box begin, [r, 1, 1]; behind all of them where there is no such image.
struct Images {
  Value elements, first;
  Dim height, width;
};

Images ImagesOf(Value x, Value batch) {
  Function& f = *x.fn;
  const Dims shape = x.type().shape();
  const Dim area = shape[2] * shape[3], all = shape[0] * area;
  const DType t = all.max() > INT32_MAX ? DType::kI64 : DType::kI32;
  const Value wrapped = Wrapped(batch, shape[0]);
  const Value image =
      convert(select(IsInside(wrapped, shape[0]), wrapped, DimValue(shape[0], wrapped)), t);
  const Value planes = f(Reshape{{shape[0], shape[1], area}}, {x});
  return {f(Reshape{{shape[1], all}}, {f(Transpose{{1, 0, 2}}, {planes})}),
          f(Reshape{{batch.type().shape()[0], 1, 1}}, {image * DimValue(area, image)}), shape[2],
          shape[3]};
}

// The elements at rows and columns, times their shares: [c, r, rows, columns].
Value SharesOf(const Images& x, const std::array<Value, 4>& at) {
  Function& f = *x.elements.fn;
  const DType t = x.first.type().dtype();
  const auto whole = [&](Value v, size_t axis) { return OnImage(convert(v, t), axis); };
  const Value row = whole(at[0], 0), column = whole(at[1], 1);
  const Value index = x.first + (row * DimValue(x.width, row) + column);
  const Value taken = f(Gather{.axis = 1}, {x.elements, index});
  return taken * (OnImage(at[2], 0) * OnImage(at[3], 1));
}

}  // namespace

absl::StatusOr<Types> RoiAlign::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &rois = in[1].shape();
  if (sizes.size() != 2) return InvalidArgument("{} sizes, not 2", sizes.size());
  for (const int64_t n : {sizes[0], sizes[1], samples})
    if (n < 1 || n > (int64_t{1} << 15)) return InvalidArgument("{} bins or samples", n);
  if (x[2].max() < 1 || x[3].max() < 1) return InvalidArgument("an image without elements");
  return Types{Type::Tensor(in[0].dtype(), {rois[0], x[1], sizes[0], sizes[1]})};
}

Values RoiAlign::decompose(Function& f, ValueSpan in) const {
  const Dims shape = in[0].type().shape();
  const Value rois = Widened(in[1]);
  const Images x = ImagesOf(Widened(in[0]), in[2]);
  const AxisPoints rows = PointsAlong(*this, rois, 0, x.height);
  const AxisPoints columns = PointsAlong(*this, rois, 1, x.width);
  Value y;
  for (const bool below : {false, true})
    for (const bool right : {false, true}) {
      const std::array at = {below ? rows.high : rows.low, right ? columns.high : columns.low,
                             below ? rows.high_share : rows.low_share,
                             right ? columns.high_share : columns.low_share};
      const Value term = SharesOf(x, at);
      y = !y ? term : largest ? max(y, term) : y + term;
    }
  const Dim boxes = rois.type().shape()[0];
  y = f(Reshape{{shape[1], boxes, sizes[0], samples, sizes[1], samples}}, {y});
  const ReduceKind mean = adaptive ? ReduceKind::kSum : ReduceKind::kMean;  // weighed before
  y = ReduceAxes(largest ? ReduceKind::kMax : mean, y, {3, 5});
  y = f(Transpose{{1, 0, 2, 3}}, {f(Reshape{{shape[1], boxes, sizes[0], sizes[1]}}, {y})});
  return {Narrowed(y, in[0].type().dtype())};
}

Cases RoiAlign::cases() {
  return {{RoiAlign{{2, 3}}, {"float[2,3,5,6]", "float[2,4] in 0..5", "i64[2] in 0..1"}},
          {RoiAlign{.sizes = {2, 2}, .samples = 2, .scale = 0.5, .half_pixel = false},
           {"f64[1,2,4,4]", "f64[3,4] in -3..12", "i32[3] in 0..0"}},
          {RoiAlign{.sizes = {1, 2}, .samples = 3, .largest = true},
           {"f32[2,1,4,5] in 0..4", "f32[2,4] in 0..5", "i64[2] in 0..1"}},
          {RoiAlign{.sizes = {2, 1}, .samples = 3, .adaptive = true},
           {"f32[2,2,4,5]", "f32[4,4] in 0..5", "i64[4] in 0..1"}},
          {RoiAlign{.sizes = {1, 2}, .samples = 4, .largest = true, .adaptive = true},
           {"f32[1,2,4,5]", "f32[3,4] in -1..5", "i64[3] in 0..0"}},
          {RoiAlign{.samples = 5, .half_pixel = false, .adaptive = true},
           {"f32[1,2,4,5]", "f32[3,4] in -1..5", "i64[3] in 0..0"}},
          {RoiAlign{}, {"f32[1,2,1,1]", "f32[1,4] in 0..1", "i64[1] in 0..0"}},
          {RoiAlign{}, {"f32[1,2,3,3]", "f32[0,4]", "i64[0]"}},
          {RoiAlign{.sizes = {2}}, {"f32[1,2,3,3]", "f32[1,4]", "i64[1]"}, "1 sizes, not 2"},
          {RoiAlign{.samples = 0}, {"f32[1,2,3,3]", "f32[1,4]", "i64[1]"}, "0 bins or samples"},
          {RoiAlign{}, {"f32[1,2,3,3]", "f32[1,5]", "i64[1]"}, "rois"}};
}

FORGE_DEFINE_OP(RoiAlign)

}  // namespace forge::ir
