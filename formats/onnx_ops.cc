// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx_ops.h"

#include "formats/onnx_builders.h"

namespace forge::formats {
namespace {

// Sorted by name, then version. A version that only widens types has no entry of its own: the one
// before it serves, and the op refuses what it cannot compute.
constexpr OnnxOp kOps[] = {
    {"", "Add", 1, 2, 2, BuildAdd},
    {"", "Add", 7, 2, 2, BuildAdd},
    {"", "AveragePool", 1, 1, 1, BuildAveragePool},
    {"", "BatchNormalization", 1, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 7, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 9, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 14, 5, 5, BuildBatchNormalization},
    {"", "Cast", 1, 1, 1, BuildCast1},
    {"", "Cast", 6, 1, 1, BuildCast6},
    {"", "Clip", 1, 1, 1, BuildClip1},
    {"", "Clip", 11, 1, 3, BuildClip11},
    {"", "Concat", 1, 1, kAnyNumber, BuildConcat},
    {"", "Concat", 4, 1, kAnyNumber, BuildConcat},
    {"", "Constant", 1, 0, 0, BuildConstant},
    {"", "Conv", 1, 2, 3, BuildConv},
    {"", "ConvTranspose", 1, 2, 3, BuildConvTranspose},
    {"", "Div", 1, 2, 2, BuildDiv},
    {"", "Div", 7, 2, 2, BuildDiv},
    {"", "Dropout", 1, 1, 1, BuildDropout},
    {"", "Dropout", 7, 1, 1, BuildDropout},
    {"", "Dropout", 12, 1, 3, BuildDropout},
    {"", "Exp", 1, 1, 1, BuildExp},
    {"", "Flatten", 1, 1, 1, BuildFlatten},
    {"", "Gather", 1, 2, 2, BuildGather},
    {"", "GatherElements", 11, 2, 2, BuildGatherElements},
    {"", "GatherND", 11, 2, 2, BuildGatherNd},
    {"", "GatherND", 12, 2, 2, BuildGatherNd},
    {"", "Gemm", 1, 3, 3, BuildGemm},
    {"", "Gemm", 11, 2, 3, BuildGemm},
    {"", "GlobalAveragePool", 1, 1, 1, BuildGlobalAveragePool},
    {"", "GlobalMaxPool", 1, 1, 1, BuildGlobalMaxPool},
    {"", "HardSigmoid", 1, 1, 1, BuildHardSigmoid},
    {"", "HardSwish", 14, 1, 1, BuildHardSwish},
    {"", "Identity", 1, 1, 1, BuildIdentity},
    {"", "LayerNormalization", 17, 2, 3, BuildLayerNormalization},
    {"", "MatMul", 1, 2, 2, BuildMatMul},
    {"", "Max", 1, 1, kAnyNumber, BuildMax},
    {"", "MaxPool", 1, 1, 1, BuildMaxPool},
    {"", "Min", 1, 1, kAnyNumber, BuildMin},
    {"", "Mul", 1, 2, 2, BuildMul},
    {"", "Mul", 7, 2, 2, BuildMul},
    {"", "Range", 11, 3, 3, BuildRange},
    {"", "ReduceMax", 1, 1, 1, BuildReduceMax},
    {"", "ReduceMax", 18, 1, 2, BuildReduceMax},
    {"", "ReduceMean", 1, 1, 1, BuildReduceMean},
    {"", "ReduceMean", 18, 1, 2, BuildReduceMean},
    {"", "ReduceSum", 1, 1, 1, BuildReduceSum},
    {"", "ReduceSum", 13, 1, 2, BuildReduceSum},
    {"", "Relu", 1, 1, 1, BuildRelu},
    {"", "Reshape", 1, 1, 1, BuildReshape1},
    {"", "Reshape", 5, 2, 2, BuildReshape5},
    {"", "Resize", 10, 2, 2, BuildResize10},
    {"", "Resize", 11, 1, 4, BuildResize11},
    {"", "Resize", 18, 1, 4, BuildResize11},
    {"", "Shape", 1, 1, 1, BuildShape},
    {"", "Slice", 1, 1, 1, BuildSlice1},
    {"", "Slice", 10, 3, 5, BuildSlice10},
    {"", "Softmax", 1, 1, 1, BuildSoftmax1},
    {"", "Softmax", 13, 1, 1, BuildSoftmax13},
    {"", "Sqrt", 1, 1, 1, BuildSqrt},
    {"", "Squeeze", 1, 1, 1, BuildSqueeze},
    {"", "Squeeze", 13, 1, 2, BuildSqueeze},
    {"", "Sub", 1, 2, 2, BuildSub},
    {"", "Sub", 7, 2, 2, BuildSub},
    {"", "Transpose", 1, 1, 1, BuildTranspose},
    {"", "Unsqueeze", 1, 1, 1, BuildUnsqueeze},
    {"", "Unsqueeze", 13, 2, 2, BuildUnsqueeze},
    {"", "Upsample", 7, 1, 1, BuildUpsample7},
    {"", "Upsample", 9, 2, 2, BuildResize10},
};

}  // namespace

std::span<const OnnxOp> OnnxOps() { return kOps; }

const OnnxOp* FindOnnxOp(std::string_view domain, std::string_view name, int64_t opset) {
  if (domain == "ai.onnx") domain = "";
  const OnnxOp* found = nullptr;
  for (const OnnxOp& op : kOps)
    if (op.name == name && op.domain == domain && op.since <= opset) found = &op;
  return found;
}

}  // namespace forge::formats
