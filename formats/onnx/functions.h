// SPDX-License-Identifier: Apache-2.0
// Functions that a model defines: a call is replaced by the nodes of the function.
#pragma once
#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "formats/onnx/node.h"

namespace forge::formats {

// A function of a model, with the defaults of its attributes.
struct OnnxFunction {
  onnx::FunctionProto proto;
  std::vector<onnx::AttributeProto> defaults;
  Opsets opsets;
};

// The functions of a model by domain and name, and what their calls may still add.
class OnnxFunctions {
 public:
  // Takes the functions of `model`.
  //   errors: DataLoss (one is defined twice)
  absl::Status Read(onnx::ModelProto& model);
  // The function that a node calls; null where it is an operator. An operator that Forge has is
  // itself, whatever function bears its name.
  const OnnxFunction* Find(const onnx::NodeProto& node) const;
  bool empty() const { return functions_.empty(); }
  auto begin() const { return functions_.begin(); }
  auto end() const { return functions_.end(); }

  // Checks what the calls of a graph come to.
  //   errors: DataLoss (a function that calls itself), ResourceExhausted (more than 1,000,000
  //   nodes, or calls more than 200 deep)
  absl::Status CheckCalls(const onnx::GraphProto& graph) const;
  // The nodes of a call in the names of the caller, in the order of the file.
  //   errors: DataLoss (operands that do not fit)
  absl::StatusOr<onnx::GraphProto> NodesOf(const onnx::NodeProto& call, const OnnxFunction& f);

 private:
  std::map<std::pair<std::string, std::string>, OnnxFunction> functions_;
  int64_t calls_ = 0;
};

}  // namespace forge::formats
