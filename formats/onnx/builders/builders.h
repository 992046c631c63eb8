// SPDX-License-Identifier: Apache-2.0
// The operator builders that the table in ops.cc names, grouped by source file.
#pragma once
#include "formats/onnx/node.h"

namespace forge::formats {

// along_axis.cc
ir::Values BuildArgMax(OnnxNode& n);
ir::Values BuildArgMin(OnnxNode& n);
ir::Values BuildCumProd(OnnxNode& n);
ir::Values BuildCumSum(OnnxNode& n);
ir::Values BuildTopK1(OnnxNode& n);   // k is an attribute
ir::Values BuildTopK10(OnnxNode& n);  // k is an operand

// control.cc
ir::Values BuildIf(OnnxNode& n);
ir::Values BuildLoop(OnnxNode& n);

// selection.cc
ir::Values BuildCompress(OnnxNode& n);
ir::Values BuildNonZero(OnnxNode& n);
ir::Values BuildUnique(OnnxNode& n);

// elementwise.cc
ir::Values BuildIdentity(OnnxNode& n);
ir::Values BuildAdd(OnnxNode& n);
ir::Values BuildSub(OnnxNode& n);
ir::Values BuildMul(OnnxNode& n);
ir::Values BuildDiv(OnnxNode& n);
ir::Values BuildSum(OnnxNode& n);
ir::Values BuildMean(OnnxNode& n);
ir::Values BuildMax(OnnxNode& n);
ir::Values BuildPow(OnnxNode& n);
ir::Values BuildNeg(OnnxNode& n);
ir::Values BuildAbs(OnnxNode& n);
ir::Values BuildSign(OnnxNode& n);
ir::Values BuildFloor(OnnxNode& n);
ir::Values BuildCeil(OnnxNode& n);
ir::Values BuildRound(OnnxNode& n);
ir::Values BuildReciprocal(OnnxNode& n);
ir::Values BuildLog(OnnxNode& n);
ir::Values BuildTanh(OnnxNode& n);
ir::Values BuildSin(OnnxNode& n);
ir::Values BuildCos(OnnxNode& n);
ir::Values BuildTan(OnnxNode& n);
ir::Values BuildAsin(OnnxNode& n);
ir::Values BuildAcos(OnnxNode& n);
ir::Values BuildAtan(OnnxNode& n);
ir::Values BuildSinh(OnnxNode& n);
ir::Values BuildCosh(OnnxNode& n);
ir::Values BuildAsinh(OnnxNode& n);
ir::Values BuildAcosh(OnnxNode& n);
ir::Values BuildAtanh(OnnxNode& n);
ir::Values BuildMod(OnnxNode& n);
ir::Values BuildBitShift(OnnxNode& n);
ir::Values BuildSigmoid(OnnxNode& n);
ir::Values BuildErf(OnnxNode& n);
ir::Values BuildEqual(OnnxNode& n);
ir::Values BuildGreater(OnnxNode& n);
ir::Values BuildGreaterOrEqual(OnnxNode& n);
ir::Values BuildLess(OnnxNode& n);
ir::Values BuildLessOrEqual(OnnxNode& n);
ir::Values BuildAnd(OnnxNode& n);
ir::Values BuildOr(OnnxNode& n);
ir::Values BuildXor(OnnxNode& n);
ir::Values BuildNot(OnnxNode& n);
ir::Values BuildWhere(OnnxNode& n);
ir::Values BuildMin(OnnxNode& n);
ir::Values BuildRelu(OnnxNode& n);
ir::Values BuildClip1(OnnxNode& n);   // bounds are attributes
ir::Values BuildClip11(OnnxNode& n);  // bounds are operands
ir::Values BuildHardSigmoid(OnnxNode& n);
ir::Values BuildHardSwish(OnnxNode& n);
ir::Values BuildExp(OnnxNode& n);
ir::Values BuildSqrt(OnnxNode& n);
ir::Values BuildCast1(OnnxNode& n);  // the type is a word
ir::Values BuildCast6(OnnxNode& n);  // the type is a number
ir::Values BuildCastLike(OnnxNode& n);
ir::Values BuildIsNan(OnnxNode& n);
ir::Values BuildIsInf(OnnxNode& n);
ir::Values BuildBitwiseNot(OnnxNode& n);

// activation.cc
ir::Values BuildCelu(OnnxNode& n);
ir::Values BuildElu(OnnxNode& n);
ir::Values BuildGelu(OnnxNode& n);
ir::Values BuildLeakyRelu(OnnxNode& n);
ir::Values BuildMish(OnnxNode& n);
ir::Values BuildPRelu(OnnxNode& n);
ir::Values BuildSelu(OnnxNode& n);
ir::Values BuildShrink(OnnxNode& n);
ir::Values BuildSoftplus(OnnxNode& n);
ir::Values BuildSoftsign(OnnxNode& n);
ir::Values BuildThresholdedRelu(OnnxNode& n);

// creation.cc
ir::Values BuildConstantOfShape(OnnxNode& n);
ir::Values BuildEyeLike(OnnxNode& n);
ir::Values BuildOneHot(OnnxNode& n);
ir::Values BuildSize(OnnxNode& n);

// loss.cc
ir::Values BuildNegativeLogLikelihoodLoss(OnnxNode& n);
ir::Values BuildSoftmaxCrossEntropyLoss(OnnxNode& n);

// movement_composites.cc
ir::Values BuildDepthToSpace(OnnxNode& n);
ir::Values BuildSpaceToDepth(OnnxNode& n);
ir::Values BuildSplit(OnnxNode& n);
ir::Values BuildTile(OnnxNode& n);
ir::Values BuildTrilu(OnnxNode& n);

// norm.cc
ir::Values BuildGlobalLpPool(OnnxNode& n);
ir::Values BuildLpNormalization(OnnxNode& n);
ir::Values BuildLrn(OnnxNode& n);
ir::Values BuildMeanVarianceNormalization(OnnxNode& n);

// constant.cc
ir::Values BuildConstant(OnnxNode& n);

// quantise.cc
ir::Values BuildDequantizeLinear(OnnxNode& n);

// movement.cc
ir::Values BuildConcat(OnnxNode& n);
ir::Values BuildExpand(OnnxNode& n);
ir::Values BuildFlatten(OnnxNode& n);
ir::Values BuildPad2(OnnxNode& n);      // widths and value are attributes
ir::Values BuildPad11(OnnxNode& n);     // widths and value are operands
ir::Values BuildReshape1(OnnxNode& n);  // the shape is an attribute
ir::Values BuildReshape5(OnnxNode& n);  // the shape is an operand
ir::Values BuildShape(OnnxNode& n);
ir::Values BuildSlice1(OnnxNode& n);   // bounds are attributes
ir::Values BuildSlice10(OnnxNode& n);  // bounds are operands
ir::Values BuildSqueeze(OnnxNode& n);
ir::Values BuildTranspose(OnnxNode& n);
ir::Values BuildUnsqueeze(OnnxNode& n);

// gather.cc
ir::Values BuildGather(OnnxNode& n);
ir::Values BuildGatherElements(OnnxNode& n);
ir::Values BuildGatherNd(OnnxNode& n);
ir::Values BuildRange(OnnxNode& n);

// Fails where an index that the file states as operand 1 lies outside the axis of operand 0. Others
// give 0 where they do, or are dropped.
void CheckIndicesAlong(OnnxNode& n, int64_t axis);

// scatter.cc
ir::Values BuildMaxUnpool(OnnxNode& n);
ir::Values BuildScatterElements(OnnxNode& n);
ir::Values BuildScatterNd(OnnxNode& n);

// sample.cc
ir::Values BuildAffineGrid(OnnxNode& n);
ir::Values BuildCol2Im(OnnxNode& n);
ir::Values BuildGridSample(OnnxNode& n);
ir::Values BuildRoiAlign(OnnxNode& n);

// resize.cc
ir::Values BuildResize10(OnnxNode& n);  // Upsample too
ir::Values BuildResize11(OnnxNode& n);
ir::Values BuildUpsample7(OnnxNode& n);  // scales are an attribute

// window.cc
ir::Values BuildAveragePool(OnnxNode& n);
ir::Values BuildConv(OnnxNode& n);
ir::Values BuildConvTranspose(OnnxNode& n);
ir::Values BuildLpPool(OnnxNode& n);
ir::Values BuildMaxPool(OnnxNode& n);

// nn.cc
ir::Values BuildBatchNormalization(OnnxNode& n);
ir::Values BuildInstanceNormalization(OnnxNode& n);
ir::Values BuildGroupNormalization(OnnxNode& n);
ir::Values BuildDropout(OnnxNode& n);
ir::Values BuildGemm(OnnxNode& n);
ir::Values BuildLayerNormalization(OnnxNode& n);
ir::Values BuildMatMul(OnnxNode& n);
ir::Values BuildMatMulInteger(OnnxNode& n);
ir::Values BuildRmsNormalization(OnnxNode& n);
ir::Values BuildSoftmax1(OnnxNode& n);  // over all axes from `axis` on
ir::Values BuildSoftmax13(OnnxNode& n);
ir::Values BuildLogSoftmax1(OnnxNode& n);  // likewise
ir::Values BuildLogSoftmax13(OnnxNode& n);
ir::Values BuildHardmax1(OnnxNode& n);  // likewise
ir::Values BuildHardmax13(OnnxNode& n);
ir::Values BuildEinsum(OnnxNode& n);

// reduce.cc
ir::Values BuildGlobalAveragePool(OnnxNode& n);
ir::Values BuildGlobalMaxPool(OnnxNode& n);
ir::Values BuildReduceL1(OnnxNode& n);
ir::Values BuildReduceL2(OnnxNode& n);
ir::Values BuildReduceLogSum(OnnxNode& n);
ir::Values BuildReduceLogSumExp(OnnxNode& n);
ir::Values BuildReduceMax(OnnxNode& n);
ir::Values BuildReduceMin(OnnxNode& n);
ir::Values BuildReduceProd(OnnxNode& n);
ir::Values BuildReduceSumSquare(OnnxNode& n);
ir::Values BuildReduceMean(OnnxNode& n);
ir::Values BuildReduceSum(OnnxNode& n);

// recurrent.cc
ir::Values BuildGru(OnnxNode& n);
ir::Values BuildLstm(OnnxNode& n);
ir::Values BuildRnn(OnnxNode& n);

}  // namespace forge::formats
