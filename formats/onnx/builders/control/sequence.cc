// SPDX-License-Identifier: Apache-2.0
// Sequences, optionals and other host steps. A value that is optional is the value itself, so an
// optional is asked and opened when a run has told what it holds.
#include "ir/ops/host/sequence.h"

#include "formats/images/decode_image_op.h"
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/host/select_boxes.h"

namespace forge::formats {
namespace {

ir::Values Operands(OnnxNode& n) {
  ir::Values in;
  for (size_t i = 0; i < n.inputs(); ++i) in.push_back(n.in(i));
  return in;
}

template <class Op>
ir::Values StepOf(OnnxNode& n) {
  return n.fn().Add(Op{}, Operands(n));
}

ir::Values BuildSequenceAt(OnnxNode& n) {
  return n.fn().Add(ir::SequenceAt{.whole_tensors = n.Flag("whole_tensors")}, Operands(n));
}

ir::Values BuildSequenceEmpty(OnnxNode& n) {
  return n.fn().Add(ir::SequenceConstruct{TypeAttribute(n, "dtype", DType::kF32)}, {});
}

ir::Values BuildSplitToSequence(OnnxNode& n) {
  const ir::SplitToSequence op{.axis = n.Int("axis", 0), .keep_dims = n.Flag("keepdims", true)};
  return n.fn().Add(op, Operands(n));
}

ir::Values BuildConcatFromSequence(OnnxNode& n) {
  if (!n.Has("axis")) n.Fail("attribute 'axis' is missing");
  const ir::ConcatFromSequence op{.axis = n.Int("axis", 0), .new_axis = n.Flag("new_axis")};
  return n.fn().Add(op, Operands(n));
}

ir::Values BuildOptional(OnnxNode& n) {
  n.Ignore("type");  // of a value that is not there: nothing reads it
  if (n.HasInput(0)) return {n.in(0)};
  return n.fn().Add(ir::NoValue{}, {});
}

bool HoldsValue(OnnxNode& n) {
  return n.HasInput(0) && n.type(0).kind() != ir::Type::Kind::kOptional;
}

ir::Values BuildOptionalHasElement(OnnxNode& n) {
  n.Define(ir::HostValue::Scalar(DType::kBool, HoldsValue(n) ? 1 : 0));
  return {};
}

ir::Values BuildOptionalGetElement(OnnxNode& n) {
  if (!HoldsValue(n)) n.Fail("the optional holds no value");
  return {n.in(0)};
}

ir::Values BuildNonMaxSuppression(OnnxNode& n) {
  const ir::SelectBoxes op{.centers = n.Flag("center_point_box")};
  return n.fn().Add(op, Operands(n));
}

ir::Values BuildImageDecoder(OnnxNode& n) {
  ir::DecodePicture op;
  const std::string format = n.String("pixel_format", "RGB");
  if (format == "BGR")
    op.order = ir::PixelOrder::kBgr;
  else if (format == "Grayscale")
    op.order = ir::PixelOrder::kGray;
  else if (format != "RGB")
    n.Fail("pixel_format is '{}'", format);
  return n.fn().Add(op, Operands(n));
}

constexpr OnnxOp kSequenceOps[] = {
    {"", "ConcatFromSequence", 11, 1, 1, BuildConcatFromSequence},
    {"", "ImageDecoder", 20, 1, 1, BuildImageDecoder},
    {"", "NonMaxSuppression", 10, 2, 5, BuildNonMaxSuppression},
    {"", "Optional", 15, 0, 1, BuildOptional},
    {"", "OptionalGetElement", 15, 1, 1, BuildOptionalGetElement},
    {"", "OptionalHasElement", 15, 0, 1, BuildOptionalHasElement},
    {"", "SequenceAt", 11, 2, 2, BuildSequenceAt},
    {"", "SequenceConstruct", 11, 1, kAnyNumber, StepOf<ir::SequenceConstruct>},
    {"", "SequenceEmpty", 11, 0, 0, BuildSequenceEmpty},
    {"", "SequenceErase", 11, 1, 2, StepOf<ir::SequenceErase>},
    {"", "SequenceInsert", 11, 2, 3, StepOf<ir::SequenceInsert>},
    {"", "SequenceLength", 11, 1, 1, StepOf<ir::SequenceLength>},
    {"", "SequenceMap", 17, 1, kAnyNumber, nullptr},  // rewritten before: see sequence_map.h
    {"", "SplitToSequence", 11, 1, 2, BuildSplitToSequence},
};

}  // namespace

std::span<const OnnxOp> SequenceOps() { return kSequenceOps; }

}  // namespace forge::formats
