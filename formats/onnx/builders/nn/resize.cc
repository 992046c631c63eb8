// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/resize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/nn/resize_weights.h"
#include "formats/onnx/builders/steps.h"
#include "ir/op/axes.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/product/matmul.h"

namespace forge::formats {
namespace {

struct Fraction {
  int64_t numerator, denominator;
};

// The simplest fraction whose f32 is `scale`: files state 1/3 as 0.33333334. By its continued
// fraction; nullopt where there is none of numbers below 2^15.
std::optional<Fraction> FractionOf(float scale) {
  constexpr int64_t kMost = int64_t{1} << 15;
  int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  double rest = static_cast<double>(scale);
  for (int step = 0; step < 32 && rest < static_cast<double>(kMost); ++step) {
    const auto whole = static_cast<int64_t>(rest);
    const int64_t p = whole * p1 + p0, q = whole * q1 + q0;
    if (p > kMost || q > kMost) return std::nullopt;
    if (static_cast<float>(static_cast<double>(p) / static_cast<double>(q)) == scale)
      return Fraction{p, q};
    p0 = p1, q0 = q1, p1 = p, q1 = q;
    rest = 1 / (rest - static_cast<double>(whole));
  }
  return std::nullopt;
}

template <class E>
struct Word {
  std::string_view text;
  E value;
};

constexpr Word<ir::ResizeKind> kKinds[] = {{"nearest", ir::ResizeKind::kNearest},
                                           {"linear", ir::ResizeKind::kLinear},
                                           {"bilinear", ir::ResizeKind::kLinear},
                                           {"cubic", ir::ResizeKind::kCubic}};
constexpr Word<AxisPlaces> kPlaces[] = {{"half_pixel", AxisPlaces::kHalfPixel},
                                        {"half_pixel_symmetric", AxisPlaces::kHalfPixelSymmetric},
                                        {"pytorch_half_pixel", AxisPlaces::kPytorchHalfPixel},
                                        {"align_corners", AxisPlaces::kAlignCorners},
                                        {"asymmetric", AxisPlaces::kAsymmetric},
                                        {"tf_crop_and_resize", AxisPlaces::kCropAndResize}};
constexpr Word<ir::ResizeRounding> kRoundings[] = {
    {"round_prefer_floor", ir::ResizeRounding::kPreferFloor},
    {"round_prefer_ceil", ir::ResizeRounding::kPreferCeil},
    {"floor", ir::ResizeRounding::kFloor},
    {"ceil", ir::ResizeRounding::kCeil}};
enum class Policy : uint8_t { kStretch, kNotLarger, kNotSmaller };
constexpr Word<Policy> kPolicies[] = {{"stretch", Policy::kStretch},
                                      {"not_larger", Policy::kNotLarger},
                                      {"not_smaller", Policy::kNotSmaller}};

// What a node says, and the op `resize` that it is where the op can express it.
struct ResizeNode {
  ir::Resize op;
  AxisPlaces places = AxisPlaces::kAsymmetric;
  Policy policy = Policy::kStretch;
  double extrapolation = 0;
  bool antialias = false, exclude_outside = false;
  std::vector<double> scales;  // of op.axes
  std::vector<size_t> axes;    // those that the operands list

  bool has_uneven_corners = false;  // align_corners counts in elements that scales cut off

  bool NeedsWeights() const {
    const bool interpolates = op.kind != ir::ResizeKind::kNearest;
    return has_uneven_corners || places == AxisPlaces::kHalfPixelSymmetric ||
           places == AxisPlaces::kCropAndResize ||
           (interpolates && (antialias || (exclude_outside && op.kind == ir::ResizeKind::kCubic)));
  }
};

template <class E, size_t N>
E Choose(OnnxNode& n, std::string_view attribute, const Word<E> (&words)[N]) {
  const std::string given = n.String(attribute, words[0].text);
  for (const Word<E>& w : words)
    if (w.text == given) return w.value;
  n.Fail("attribute '{}' is '{}', which is not supported", attribute, given);
  return words[0].value;
}

ir::ResizeCoordinates CoordinatesOf(AxisPlaces places) {
  switch (places) {
    case AxisPlaces::kPytorchHalfPixel:
      return ir::ResizeCoordinates::kPytorchHalfPixel;
    case AxisPlaces::kAlignCorners:
      return ir::ResizeCoordinates::kAlignCorners;
    case AxisPlaces::kAsymmetric:
      return ir::ResizeCoordinates::kAsymmetric;
    default:
      return ir::ResizeCoordinates::kHalfPixel;
  }
}

void ReadModes(OnnxNode& n, ResizeNode& r) {
  r.op.kind = Choose(n, "mode", kKinds);
  r.op.rounding = ir::ResizeRounding::kFloor;
  if (n.since() >= 11) {
    r.places = Choose(n, "coordinate_transformation_mode", kPlaces);
    r.op.rounding = Choose(n, "nearest_mode", kRoundings);
    r.op.cubic = n.Float("cubic_coeff_a", -0.75);
    r.extrapolation = n.Float("extrapolation_value", 0);
    r.exclude_outside = n.Flag("exclude_outside");
  }
  if (n.since() >= 18) {
    r.antialias = n.Flag("antialias");
    r.policy = Choose(n, "keep_aspect_ratio_policy", kPolicies);
  }
  r.op.coordinates = CoordinatesOf(r.places);
}

// Axes of operand 0 that the scales or sizes are of.
std::vector<size_t> AxesOf(OnnxNode& n, const ir::Type& x) {
  std::vector<size_t> axes;
  if (!n.Has("axes") || n.since() < 18) {
    for (int64_t a = 0; a < x.rank(); ++a) axes.push_back(static_cast<size_t>(a));
    return axes;
  }
  for (int64_t given : n.Ints("axes")) {
    const absl::StatusOr<int64_t> a = ir::NormalAxis(given, x.rank());
    if (!a.ok()) n.Fail("{}", Message(a.status()));
    axes.push_back(static_cast<size_t>(a.value_or(0)));
  }
  return axes;
}

void ByScales(OnnxNode& n, std::span<const double> scales, ResizeNode& r) {
  const ir::Dims& shape = n.type(0).shape();
  r.axes = AxesOf(n, n.type(0));
  if (scales.size() != r.axes.size())
    return n.Fail("{} scales, {} axes", scales.size(), r.axes.size());
  for (size_t i = 0; i < r.axes.size() && n.status().ok(); ++i) {
    if (scales[i] == 1) continue;
    const auto scale = static_cast<float>(scales[i]);
    const std::optional<Fraction> f = scale > 0 ? FractionOf(scale) : std::nullopt;
    if (!f) return n.Fail("scale {} is not a ratio of small integers", scales[i]);
    r.op.axes.push_back(static_cast<int64_t>(r.axes[i]));
    r.op.sizes.push_back(FloorDiv(shape[r.axes[i]] * f->numerator, f->denominator));
    r.op.numerators.emplace_back(f->numerator);
    r.op.denominators.emplace_back(f->denominator);
    r.scales.push_back(scales[i]);
    const ir::Dim& extent = shape[r.axes[i]];
    if (extent.is_constant() && extent.constant() * f->numerator % f->denominator != 0)
      r.has_uneven_corners |= r.places == AxisPlaces::kAlignCorners;
  }
}

// One scale for all axes, so that no extent is larger, or smaller, than its size.
void KeepAspectRatio(OnnxNode& n, const ir::Dims& sizes, ResizeNode& r) {
  const ir::Dims& shape = n.type(0).shape();
  double scale = 0;
  for (size_t i = 0; i < r.axes.size(); ++i) {
    const ir::Dim extent = shape[r.axes[i]];
    if (!extent.is_constant() || !sizes[i].is_constant() || extent.constant() < 1)
      return n.Fail("the aspect ratio of {} is not known", n.type(0).ToText());
    const double own =
        static_cast<double>(sizes[i].constant()) / static_cast<double>(extent.constant());
    const bool smaller = r.policy == Policy::kNotLarger;
    if (i == 0 || (smaller ? own < scale : own > scale)) scale = own;
  }
  for (size_t axis : r.axes) {
    const double size = scale * static_cast<double>(shape[axis].constant());
    r.op.axes.push_back(static_cast<int64_t>(axis));
    r.op.sizes.emplace_back(static_cast<int64_t>(std::floor(size + 0.5)));
    r.scales.push_back(scale);
  }
}

void BySizes(OnnxNode& n, const ir::Dims& sizes, ResizeNode& r) {
  const ir::Dims& shape = n.type(0).shape();
  r.axes = AxesOf(n, n.type(0));
  if (sizes.size() != r.axes.size())
    return n.Fail("{} sizes, {} axes", sizes.size(), r.axes.size());
  if (r.policy != Policy::kStretch) return KeepAspectRatio(n, sizes, r);
  for (size_t i = 0; i < r.axes.size() && n.status().ok(); ++i) {
    const ir::Dim extent = shape[r.axes[i]];
    if (sizes[i] == extent && r.places != AxisPlaces::kCropAndResize) continue;
    r.op.axes.push_back(static_cast<int64_t>(r.axes[i]));
    r.op.sizes.push_back(sizes[i]);
    const bool known = sizes[i].is_constant() && extent.is_constant() && extent.constant() > 0;
    r.scales.push_back(known ? static_cast<double>(sizes[i].constant()) /
                                   static_cast<double>(extent.constant())
                             : 0);
  }
}

// The axis that entry `k` of the op resizes, as numbers; nullopt, with a failure, where they are
// not known.
std::optional<AxisResize> AxisOf(OnnxNode& n, const ResizeNode& r, size_t k) {
  constexpr int64_t kMostExtent = int64_t{1} << 20, kMostWeights = int64_t{1} << 26;
  const ir::Dim in = n.type(0).shape()[static_cast<size_t>(r.op.axes[k])], out = r.op.sizes[k];
  const auto is_good = [&](const ir::Dim& d) {
    return d.is_constant() && d.constant() >= 1 && d.constant() <= kMostExtent;
  };
  if (!is_good(in) || !is_good(out) || in.constant() * out.constant() > kMostWeights) {
    n.Fail("its weights for {} of {} elements are too many, or not known before the model runs",
           out.ToText(), in.ToText());
    return std::nullopt;
  }
  AxisResize a{in.constant(), out.constant(), r.scales[k], r.places};
  if (r.places != AxisPlaces::kCropAndResize) return a;
  const std::optional<ir::HostValue> region = n.Constant(1);
  const auto all = static_cast<int64_t>(r.axes.size());
  if (!region || region->elements() != 2 * all) {
    n.Fail("its region is not known before the model runs, or has not two numbers for each axis");
    return std::nullopt;
  }
  for (int64_t i = 0; i < all; ++i)
    if (static_cast<int64_t>(r.axes[static_cast<size_t>(i)]) == r.op.axes[k]) {
      a.begin = region->f64(i);
      a.end = region->f64(all + i);
    }
  return a;
}

int64_t RoundedPlace(const AxisResize& a, ir::ResizeRounding rounding, int64_t i) {
  const double at = PlaceOf(a, i);
  double place = std::floor(at);
  if (rounding == ir::ResizeRounding::kCeil) place = std::ceil(at);
  if (rounding == ir::ResizeRounding::kPreferFloor) place = std::ceil(at - 0.5);
  if (rounding == ir::ResizeRounding::kPreferCeil) place = std::floor(at + 0.5);
  return static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(a.in - 1)));
}

// `x` with one axis resized by weights, or by the indices of nearest elements.
ir::Value ResizedAlong(OnnxNode& n, const ResizeNode& r, ir::Value x, int64_t axis,
                       const AxisResize& a) {
  if (r.op.kind == ir::ResizeKind::kNearest) {
    ir::HostValue from = *ir::HostValue::Zeros(DType::kI32, std::array{a.out});
    for (int64_t i = 0; i < a.out; ++i) from.SetI64(i, RoundedPlace(a, r.op.rounding, i));
    return n.fn()(ir::Gather{.axis = axis}, {x, n.MakeConstant(from)});
  }
  const AxisFilter filter{
      r.op.kind == ir::ResizeKind::kCubic ? AxisKernel::kCubic : AxisKernel::kLinear, r.op.cubic,
      r.antialias, r.exclude_outside};
  if (!Has(kFloatTypes, x.type().dtype())) {
    n.Fail("interpolation of {} is not supported here", Name(x.type().dtype()));
    return x;
  }
  const std::vector<double> weights = AxisWeights(a, filter);
  ir::HostValue matrix = *ir::HostValue::Zeros(x.type().dtype(), std::array{a.out, a.in});
  for (size_t i = 0; i < weights.size(); ++i) matrix.Set(static_cast<int64_t>(i), weights[i]);
  if (x.type().rank() == 1)  // a row, for the product
    return ReshapedTo(n, ResizedAlong(n, r, ReshapedTo(n, x, {1, a.in}), 1, a), {a.out});
  // The axis is the last of the product.
  std::vector<int64_t> order;
  for (int64_t d = 0; d < x.type().rank(); ++d) order.push_back(d);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  const ir::Value last = Permuted(n, x, order);
  const ir::Value y = n.fn()(ir::MatMul{.transpose_b = true}, {last, n.MakeConstant(matrix)});
  return Permuted(n, y, order);
}

// True for elements of the axis that lie outside of it; absent where none does.
ir::Value OutsideAlong(OnnxNode& n, int64_t axis, int64_t rank, const AxisResize& a) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = a.out;
  ir::HostValue out = *ir::HostValue::Zeros(DType::kBool, shape);
  bool any = false;
  for (int64_t i = 0; i < a.out; ++i) {
    const double at = PlaceOf(a, i);
    const bool outside = at < 0 || at > static_cast<double>(a.in - 1);
    out.SetI64(i, outside);
    any = any || outside;
  }
  return any ? n.MakeConstant(out) : ir::Value();
}

ir::Values ResizedByWeights(OnnxNode& n, const ResizeNode& r) {
  const DType dtype = n.type(0).dtype();
  ir::Value x = ir::Widened(n.in(0));
  ir::Values outside;
  const int64_t rank = n.type(0).rank();
  for (size_t k = 0; k < r.op.axes.size(); ++k) {
    const std::optional<AxisResize> a = AxisOf(n, r, k);
    if (!a) return {};
    x = ResizedAlong(n, r, x, r.op.axes[k], *a);
    if (!n.fn().status().ok()) return {};
    if (r.places != AxisPlaces::kCropAndResize) continue;
    if (const ir::Value v = OutsideAlong(n, r.op.axes[k], rank, *a)) outside.push_back(v);
  }
  for (const ir::Value& v : outside) x = ir::select(v, r.extrapolation, x);
  return {ir::Narrowed(x, dtype)};
}

// An operand that is given and not an empty list, which stands for none.
bool IsGiven(OnnxNode& n, size_t i) {
  if (!n.HasInput(i)) return false;
  const ir::Dims* shape = n.type(i).is_tensor() ? &n.type(i).shape() : nullptr;
  return shape == nullptr || shape->size() != 1 || (*shape)[0] != ir::Dim(0);
}

ir::Values Resized(OnnxNode& n, const ResizeNode& r) {
  if (!n.status().ok()) return {};
  if (r.op.sizes.empty()) return {n.in(0)};
  if (r.NeedsWeights()) return ResizedByWeights(n, r);
  return n.fn().Add(r.op, std::array{n.in(0)});
}

void ByScalesOperand(OnnxNode& n, size_t i, ResizeNode& r) {
  const std::optional<ir::HostValue> scales = n.Constant(i);
  if (!scales || scales->rank() != 1) return n.Fail("its scales are not constant in the file");
  std::vector<double> list;
  for (int64_t k = 0; k < scales->elements(); ++k) list.push_back(scales->f64(k));
  ByScales(n, list, r);
}

ir::Values BuildResize10(OnnxNode& n) {
  ResizeNode r;
  if (!n.type(0).is_tensor()) n.Fail("the rank of its operand is not known");
  ReadModes(n, r);
  if (n.status().ok()) ByScalesOperand(n, 1, r);
  return Resized(n, r);
}

ir::Values BuildResize11(OnnxNode& n) {
  ResizeNode r;
  if (!n.type(0).is_tensor()) n.Fail("the rank of its operand is not known");
  ReadModes(n, r);
  if (!n.status().ok()) return {};
  if (IsGiven(n, 3)) {
    const std::optional<ir::Dims> sizes = n.Contents(3);
    if (sizes) BySizes(n, *sizes, r);
    if (!sizes) n.Fail("its sizes are not known before the model runs");
  } else if (IsGiven(n, 2)) {
    ByScalesOperand(n, 2, r);
  } else {
    n.Fail("neither scales nor sizes are given");
  }
  return Resized(n, r);
}

ir::Values BuildUpsample7(OnnxNode& n) {
  ResizeNode r;
  if (!n.type(0).is_tensor()) n.Fail("the rank of its operand is not known");
  ReadModes(n, r);
  if (n.since() < 7) {
    const double height = n.Float("height_scale", 0), width = n.Float("width_scale", 0);
    if (n.status().ok()) ByScales(n, std::array{1.0, 1.0, height, width}, r);
  } else if (n.status().ok()) {
    ByScales(n, n.Floats("scales"), r);
  }
  return Resized(n, r);
}

constexpr OnnxOp kResizeOps[] = {
    {"", "Resize", 10, 2, 2, BuildResize10},   {"", "Resize", 11, 1, 4, BuildResize11},
    {"", "Resize", 18, 1, 4, BuildResize11},   {"", "Upsample", 1, 1, 1, BuildUpsample7},
    {"", "Upsample", 7, 1, 1, BuildUpsample7}, {"", "Upsample", 9, 2, 2, BuildResize10},
};

}  // namespace

std::span<const OnnxOp> ResizeOps() { return kResizeOps; }

}  // namespace forge::formats
