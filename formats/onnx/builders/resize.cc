// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/resize.h"

#include "formats/onnx/builders/families.h"
#include "ir/op/axes.h"

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
constexpr Word<ir::ResizeCoordinates> kCoordinates[] = {
    {"half_pixel", ir::ResizeCoordinates::kHalfPixel},
    {"pytorch_half_pixel", ir::ResizeCoordinates::kPytorchHalfPixel},
    {"align_corners", ir::ResizeCoordinates::kAlignCorners},
    {"asymmetric", ir::ResizeCoordinates::kAsymmetric}};
constexpr Word<ir::ResizeRounding> kRoundings[] = {
    {"round_prefer_floor", ir::ResizeRounding::kPreferFloor},
    {"round_prefer_ceil", ir::ResizeRounding::kPreferCeil},
    {"floor", ir::ResizeRounding::kFloor},
    {"ceil", ir::ResizeRounding::kCeil}};

template <class E, size_t N>
E Choose(OnnxNode& n, std::string_view attribute, const Word<E> (&words)[N]) {
  const std::string given = n.String(attribute, words[0].text);
  for (const Word<E>& w : words)
    if (w.text == given) return w.value;
  n.Fail("attribute '{}' is '{}', which is not supported", attribute, given);
  return words[0].value;
}

void ReadModes(OnnxNode& n, ir::Resize& op) {
  op.kind = Choose(n, "mode", kKinds);
  op.coordinates = ir::ResizeCoordinates::kAsymmetric;
  op.rounding = ir::ResizeRounding::kFloor;
  if (n.since() < 11) return;
  op.coordinates = Choose(n, "coordinate_transformation_mode", kCoordinates);
  op.rounding = Choose(n, "nearest_mode", kRoundings);
  op.cubic = n.Float("cubic_coeff_a", -0.75);
  n.Ignore("extrapolation_value");  // of tf_crop_and_resize
  if (n.Flag("exclude_outside") && op.kind == ir::ResizeKind::kCubic)
    n.Fail("exclude_outside is not supported");
  if (n.since() < 18) return;
  if (n.Flag("antialias")) n.Fail("antialias is not supported");
  if (n.String("keep_aspect_ratio_policy", "stretch") != "stretch")
    n.Fail("only the policy 'stretch' is supported for the aspect ratio");
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

void ByScales(OnnxNode& n, std::span<const double> scales, ir::Resize& op) {
  const ir::Dims& shape = n.type(0).shape();
  const std::vector<size_t> axes = AxesOf(n, n.type(0));
  if (scales.size() != axes.size()) return n.Fail("{} scales, {} axes", scales.size(), axes.size());
  for (size_t i = 0; i < axes.size() && n.status().ok(); ++i) {
    if (scales[i] == 1) continue;
    const auto scale = static_cast<float>(scales[i]);
    const std::optional<Fraction> f = scale > 0 ? FractionOf(scale) : std::nullopt;
    if (!f) return n.Fail("scale {} is not a ratio of small integers", scales[i]);
    op.axes.push_back(static_cast<int64_t>(axes[i]));
    op.sizes.push_back(FloorDiv(shape[axes[i]] * f->numerator, f->denominator));
    op.numerators.emplace_back(f->numerator);
    op.denominators.emplace_back(f->denominator);
  }
}

void BySizes(OnnxNode& n, const ir::Dims& sizes, ir::Resize& op) {
  const ir::Dims& shape = n.type(0).shape();
  const std::vector<size_t> axes = AxesOf(n, n.type(0));
  if (sizes.size() != axes.size()) return n.Fail("{} sizes, {} axes", sizes.size(), axes.size());
  for (size_t i = 0; i < axes.size() && n.status().ok(); ++i) {
    if (sizes[i] == shape[axes[i]]) continue;
    op.axes.push_back(static_cast<int64_t>(axes[i]));
    op.sizes.push_back(sizes[i]);
  }
}

// An operand that is given and not an empty list, which stands for none.
bool IsGiven(OnnxNode& n, size_t i) {
  if (!n.HasInput(i)) return false;
  const ir::Dims* shape = n.type(i).is_tensor() ? &n.type(i).shape() : nullptr;
  return shape == nullptr || shape->size() != 1 || (*shape)[0] != ir::Dim(0);
}

ir::Values Resized(OnnxNode& n, const ir::Resize& op) {
  if (!n.status().ok()) return {};
  if (op.sizes.empty()) return {n.in(0)};
  return n.fn().Add(op, std::array{n.in(0)});
}

void ByScalesOperand(OnnxNode& n, size_t i, ir::Resize& op) {
  const std::optional<ir::HostValue> scales = n.Constant(i);
  if (!scales || scales->rank() != 1) return n.Fail("its scales are not constant in the file");
  std::vector<double> list;
  for (int64_t k = 0; k < scales->elements(); ++k) list.push_back(scales->f64(k));
  ByScales(n, list, op);
}

ir::Values BuildResize10(OnnxNode& n) {
  ir::Resize op;
  if (!n.type(0).is_tensor()) n.Fail("the rank of its operand is not known");
  ReadModes(n, op);
  if (n.status().ok()) ByScalesOperand(n, 1, op);
  return Resized(n, op);
}

ir::Values BuildResize11(OnnxNode& n) {
  ir::Resize op;
  if (!n.type(0).is_tensor()) n.Fail("the rank of its operand is not known");
  ReadModes(n, op);
  if (!n.status().ok()) return {};
  if (IsGiven(n, 3)) {
    const std::optional<ir::Dims> sizes = n.Contents(3);
    if (sizes) BySizes(n, *sizes, op);
    if (!sizes) n.Fail("its sizes are not known before the model runs");
  } else if (IsGiven(n, 2)) {
    ByScalesOperand(n, 2, op);
  } else {
    n.Fail("neither scales nor sizes are given");
  }
  return Resized(n, op);
}

ir::Values BuildUpsample7(OnnxNode& n) {
  ir::Resize op;
  if (!n.type(0).is_tensor()) n.Fail("the rank of its operand is not known");
  ReadModes(n, op);
  if (n.status().ok()) ByScales(n, n.Floats("scales"), op);
  return Resized(n, op);
}

constexpr OnnxOp kResizeOps[] = {
    {"", "Resize", 10, 2, 2, BuildResize10},  {"", "Resize", 11, 1, 4, BuildResize11},
    {"", "Resize", 18, 1, 4, BuildResize11},  {"", "Upsample", 7, 1, 1, BuildUpsample7},
    {"", "Upsample", 9, 2, 2, BuildResize10},
};

}  // namespace

std::span<const OnnxOp> ResizeOps() { return kResizeOps; }

}  // namespace forge::formats
