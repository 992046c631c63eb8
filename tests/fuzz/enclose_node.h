// SPDX-License-Identifier: Apache-2.0
// Puts a node of a model into a body or a function.
#pragma once
#include <onnx/onnx_pb.h>

namespace forge::fuzz {

enum class Enclosure : uint8_t { kBranch, kLoop, kFunction };

// The node `at` of the graph in both branches of an If, in the body of a Loop that runs twice and
// stacks its results, or in a function of the model, which it calls.
void EncloseNode(onnx::ModelProto& model, onnx::GraphProto& graph, int at, Enclosure in);

}  // namespace forge::fuzz
