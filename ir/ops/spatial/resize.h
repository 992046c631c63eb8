// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class ResizeKind : uint8_t { kNearest, kLinear, kCubic };
// Where in x the centre of element i of y lies, for a scale s.
enum class ResizeCoordinates : uint8_t {
  kHalfPixel,         // (i + 1/2) / s - 1/2
  kPytorchHalfPixel,  // the same; 0 for a size of 1
  kAlignCorners,      // i * (extent - 1) / (size - 1)
  kAsymmetric         // i / s
};
// The nearest element; the first two differ half way between two.
enum class ResizeRounding : uint8_t { kPreferFloor, kPreferCeil, kFloor, kCeil };

struct Resize {
  ResizeKind kind = ResizeKind::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kPreferFloor;
  std::vector<int64_t> axes = {};
  Dims sizes = {}, numerators = {}, denominators = {};
  double cubic = -0.75;

  static constexpr OpInfo kInfo{
      .name = "resize",
      .formula =
          "y takes the nearest element of x, or interpolates between 2 or 4 along each "
          "axis; outside, x continues with its outermost elements",
      .inputs = "x: real|bool[*d]",
      .outputs = "y: =x[*s]",
      .source = "ONNX Resize-19; torch.nn.functional.interpolate"};
  static constexpr Field kFields[] = {
      FieldOf<&Resize::kind>("kind", "Linear and cubic take floats only.", "nearest|linear|cubic"),
      FieldOf<&Resize::coordinates>("coordinates", "Where in x the elements of y lie.",
                                    "half_pixel|pytorch_half_pixel|align_corners|asymmetric"),
      FieldOf<&Resize::rounding>("rounding", "Of nearest.", "prefer_floor|prefer_ceil|floor|ceil"),
      FieldOf<&Resize::axes>("axes", "Those resized; none means the leading ones."),
      FieldOf<&Resize::sizes>("sizes", "Extents in y, one for each."),
      FieldOf<&Resize::numerators>("numerators",
                                   "With `denominators` the scale of each axis; none "
                                   "means size / extent."),
      FieldOf<&Resize::denominators>("denominators", "At least 1."),
      FieldOf<&Resize::cubic>("cubic", "The cubic kernel's coefficient.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Resize*);

// Element i of an axis of y lies at (i * step + shift) / divisor of x: exact, unlike floats.
struct ResizeRatio {
  size_t axis = 0;
  Dim extent, size, step, shift, divisor;
};
// Those of the axes that a resize names, for an operand of this shape.
//   errors: InvalidArgument (attributes that do not fit the shape)
absl::StatusOr<std::vector<ResizeRatio>> RatiosOf(const Resize& op, const Dims& shape);

}  // namespace forge::ir
