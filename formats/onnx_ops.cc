// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx_ops.h"

#include "formats/onnx_builders.h"

namespace forge::formats {
namespace {

// Sorted by name, then version. A version that only widens types has no entry of its own: the one
// before it serves, and the op refuses what it cannot compute.
constexpr OnnxOp kOps[] = {
    {"", "Abs", 1, 1, 1, BuildAbs},
    {"", "Add", 1, 2, 2, BuildAdd},
    {"", "Add", 7, 2, 2, BuildAdd},
    {"", "And", 1, 2, 2, BuildAnd},
    {"", "And", 7, 2, 2, BuildAnd},
    {"", "AveragePool", 1, 1, 1, BuildAveragePool},
    {"", "BatchNormalization", 1, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 7, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 9, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 14, 5, 5, BuildBatchNormalization},
    {"", "BitwiseAnd", 18, 2, 2, BuildAnd},
    {"", "BitwiseOr", 18, 2, 2, BuildOr},
    {"", "BitwiseXor", 18, 2, 2, BuildXor},
    {"", "Cast", 1, 1, 1, BuildCast1},
    {"", "Cast", 6, 1, 1, BuildCast6},
    {"", "Ceil", 1, 1, 1, BuildCeil},
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
    {"", "Equal", 1, 2, 2, BuildEqual},
    {"", "Equal", 7, 2, 2, BuildEqual},
    {"", "Erf", 9, 1, 1, BuildErf},
    {"", "Exp", 1, 1, 1, BuildExp},
    {"", "Flatten", 1, 1, 1, BuildFlatten},
    {"", "Floor", 1, 1, 1, BuildFloor},
    {"", "Gather", 1, 2, 2, BuildGather},
    {"", "GatherElements", 11, 2, 2, BuildGatherElements},
    {"", "GatherND", 11, 2, 2, BuildGatherNd},
    {"", "GatherND", 12, 2, 2, BuildGatherNd},
    {"", "Gemm", 1, 3, 3, BuildGemm},
    {"", "Gemm", 11, 2, 3, BuildGemm},
    {"", "GlobalAveragePool", 1, 1, 1, BuildGlobalAveragePool},
    {"", "GlobalMaxPool", 1, 1, 1, BuildGlobalMaxPool},
    {"", "Greater", 1, 2, 2, BuildGreater},
    {"", "Greater", 7, 2, 2, BuildGreater},
    {"", "GreaterOrEqual", 12, 2, 2, BuildGreaterOrEqual},
    {"", "HardSigmoid", 1, 1, 1, BuildHardSigmoid},
    {"", "HardSwish", 14, 1, 1, BuildHardSwish},
    {"", "Identity", 1, 1, 1, BuildIdentity},
    {"", "LayerNormalization", 17, 2, 3, BuildLayerNormalization},
    {"", "Less", 1, 2, 2, BuildLess},
    {"", "Less", 7, 2, 2, BuildLess},
    {"", "LessOrEqual", 12, 2, 2, BuildLessOrEqual},
    {"", "Log", 1, 1, 1, BuildLog},
    {"", "MatMul", 1, 2, 2, BuildMatMul},
    {"", "Max", 1, 1, kAnyNumber, BuildMax},
    {"", "MaxPool", 1, 1, 1, BuildMaxPool},
    {"", "Min", 1, 1, kAnyNumber, BuildMin},
    {"", "Mul", 1, 2, 2, BuildMul},
    {"", "Mul", 7, 2, 2, BuildMul},
    {"", "Neg", 1, 1, 1, BuildNeg},
    {"", "Not", 1, 1, 1, BuildNot},
    {"", "Or", 1, 2, 2, BuildOr},
    {"", "Or", 7, 2, 2, BuildOr},
    {"", "Pow", 1, 2, 2, BuildPow},
    {"", "Pow", 7, 2, 2, BuildPow},
    {"", "Range", 11, 3, 3, BuildRange},
    {"", "Reciprocal", 1, 1, 1, BuildReciprocal},
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
    {"", "Round", 11, 1, 1, BuildRound},
    {"", "Shape", 1, 1, 1, BuildShape},
    {"", "Sigmoid", 1, 1, 1, BuildSigmoid},
    {"", "Sign", 9, 1, 1, BuildSign},
    {"", "Slice", 1, 1, 1, BuildSlice1},
    {"", "Slice", 10, 3, 5, BuildSlice10},
    {"", "Softmax", 1, 1, 1, BuildSoftmax1},
    {"", "Softmax", 13, 1, 1, BuildSoftmax13},
    {"", "Sqrt", 1, 1, 1, BuildSqrt},
    {"", "Squeeze", 1, 1, 1, BuildSqueeze},
    {"", "Squeeze", 13, 1, 2, BuildSqueeze},
    {"", "Sub", 1, 2, 2, BuildSub},
    {"", "Sub", 7, 2, 2, BuildSub},
    {"", "Tanh", 1, 1, 1, BuildTanh},
    {"", "Transpose", 1, 1, 1, BuildTranspose},
    {"", "Unsqueeze", 1, 1, 1, BuildUnsqueeze},
    {"", "Unsqueeze", 13, 2, 2, BuildUnsqueeze},
    {"", "Upsample", 7, 1, 1, BuildUpsample7},
    {"", "Upsample", 9, 2, 2, BuildResize10},
    {"", "Where", 9, 3, 3, BuildWhere},
    {"", "Xor", 1, 2, 2, BuildXor},
    {"", "Xor", 7, 2, 2, BuildXor},
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
