// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct RoiAlign {
  std::vector<int64_t> sizes = {1, 1};
  int64_t samples = 1;
  double scale = 1;
  bool half_pixel = true;
  bool largest = false;
  bool adaptive = false;

  static constexpr OpInfo kInfo{
      .name = "roi_align",
      .formula =
          "y[r,c,i,j] = mean over samples x samples points of bin i, j of the box rois[r] in "
          "x[batch[r],c], interpolated linearly; 0 for a point more than 1 outside",
      .inputs = "x: float[n, c, h, w]; rois: =x[r, 4]; batch: i32|i64[r]",
      .outputs = "y: =x[r, c, i, j]",
      .source = "ONNX RoiAlign-16; torchvision.ops.roi_align"};
  static constexpr Field kFields[] = {
      FieldOf<&RoiAlign::sizes>("sizes", "Bins along each axis of a box."),
      FieldOf<&RoiAlign::samples>("samples", "Points along each axis of a bin, at least 1."),
      FieldOf<&RoiAlign::scale>("scale", "Of the boxes: x1, y1, x2, y2."),
      FieldOf<&RoiAlign::half_pixel>("half_pixel",
                                     "Moves boxes by half an element; else they have at least one "
                                     "element along each axis."),
      FieldOf<&RoiAlign::largest>("largest",
                                  "Instead of the mean the largest share that one of the four "
                                  "neighbours of a point has."),
      FieldOf<&RoiAlign::adaptive>("adaptive",
                                   "Along an axis the bins of a box have ceil(length of a bin) "
                                   "points, `samples` at most.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const RoiAlign*);

}  // namespace forge::ir
