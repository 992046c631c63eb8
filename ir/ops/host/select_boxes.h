// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/host/host_step.h"

namespace forge::ir {

// Non-maximum suppression with as many rows as boxes are kept.
struct SelectBoxes {
  bool centers = false;
  Dim count = -1;

  static constexpr OpInfo kInfo{
      .name = "select_boxes",
      .formula =
          "the boxes of each class by falling score, without those whose intersection over "
          "union with one before exceeds `overlap`: rows of batch, class, box",
      .inputs = "boxes: value; scores: value; most: value?; overlap: value?; least: value?",
      .outputs = "rows: value",
      .source = "ONNX NonMaxSuppression-11",
      .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&SelectBoxes::centers>("centers",
                                     "Boxes are x, y of the centre, width, height; "
                                     "else y, x of two corners."),
      FieldOf<&SelectBoxes::count>("count", "How many rows there will be; -1: not said.")};
  FORGE_HOST_STEP_OF_TYPES
  absl::StatusOr<Types> infer(TypeSpan in) const;
};
const OpDef& DefOf(const SelectBoxes*);

}  // namespace forge::ir
