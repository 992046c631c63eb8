// SPDX-License-Identifier: Apache-2.0
// The families of operators. Each source file here defines one, with its table of versions.
#pragma once
#include <span>
#include <string_view>

#include "formats/onnx/node.h"
#include "formats/onnx/ops.h"

namespace forge::formats {

inline constexpr std::string_view kMicrosoft = "com.microsoft", kMl = "ai.onnx.ml";

std::span<const OnnxOp> ActivationOps();
std::span<const OnnxOp> AlongAxisOps();
std::span<const OnnxOp> AttentionOps();
std::span<const OnnxOp> CastOps();
std::span<const OnnxOp> ConstantOps();
std::span<const OnnxOp> ControlOps();
std::span<const OnnxOp> CreationOps();
std::span<const OnnxOp> DeformConvOps();
std::span<const OnnxOp> ElementwiseOps();
std::span<const OnnxOp> GatherOps();
std::span<const OnnxOp> LabelOps();
std::span<const OnnxOp> LinearOps();
std::span<const OnnxOp> LossOps();
std::span<const OnnxOp> MicrosoftAttentionOps();
std::span<const OnnxOp> MicrosoftOps();
std::span<const OnnxOp> MicrosoftQuantisedOps();
std::span<const OnnxOp> MlOps();
std::span<const OnnxOp> MovementCompositesOps();
std::span<const OnnxOp> MovementOps();
std::span<const OnnxOp> NnOps();
std::span<const OnnxOp> NormOps();
std::span<const OnnxOp> PlacementOps();
std::span<const OnnxOp> QuantiseOps();
std::span<const OnnxOp> QuantisedProductsOps();
std::span<const OnnxOp> RecurrentOps();
std::span<const OnnxOp> RandomOps();
std::span<const OnnxOp> ReduceOps();
std::span<const OnnxOp> ResizeOps();
std::span<const OnnxOp> SampleOps();
std::span<const OnnxOp> ScatterOps();
std::span<const OnnxOp> SelectionOps();
std::span<const OnnxOp> SequenceOps();
std::span<const OnnxOp> SignalOps();
std::span<const OnnxOp> TextOps();
std::span<const OnnxOp> TrainingOps();
std::span<const OnnxOp> TreeOps();
std::span<const OnnxOp> WindowOps();

// Fails where an index that the file states as operand 1 lies outside the axis of operand 0. Others
// give 0 where they do, or are dropped.
void CheckIndicesAlong(OnnxNode& n, int64_t axis);

}  // namespace forge::formats
