// SPDX-License-Identifier: Apache-2.0
// What the device is asked to run, in one form: a lone op becomes a body of one node.
#pragma once
#include <memory>

#include "cpu_runtime/layout.h"
#include "ir/graph/module.h"

namespace forge::cpu {

// Operands are numbered as a step has them: those of the node, then its results.
class Task {
 public:
  // The node's own types; dimensions may still be symbols.
  //   errors: those of the op's inference
  static absl::StatusOr<Task> Of(const ir::AnyOp& op, ir::TypeSpan in, ir::TypeSpan out);
  // A fused body on its own, before it becomes a node: all layouts are dense.
  static absl::StatusOr<Task> OfBody(const ir::Function& body);

  const ir::Function& body() const { return *body_; }
  // The node that is neither element-wise nor a movement; null when there is none.
  const ir::Node* anchor() const { return anchor_; }
  size_t operands() const { return types_.size(); }
  size_t first_result() const { return first_result_; }
  size_t results() const { return types_.size() - first_result_; }
  const ir::Type& type(size_t operand) const { return types_[operand]; }
  // The value of the body that result `i` is.
  uint32_t result_value(size_t i) const { return body_->results()[i].value; }
  // Which operand a value of the body is; nullopt when it is computed.
  std::optional<uint32_t> OperandOf(uint32_t value) const;
  // A number that every element of the value is; nullopt otherwise.
  std::optional<Number> LiteralOf(uint32_t value) const;
  // Nodes, results and updates that read a value.
  int UsesOf(uint32_t value) const { return uses_[value]; }
  // Arguments and results with their strides.  errors: those of ViewOf
  absl::StatusOr<View> ViewOfOperand(size_t operand) const { return ViewOf(types_[operand]); }

 private:
  absl::Status Read();
  std::shared_ptr<ir::Function> own_;  // of a lone op
  const ir::Function* body_ = nullptr;
  const ir::Node* anchor_ = nullptr;
  ir::Types types_;
  size_t first_result_ = 0;
  std::vector<uint32_t> argument_operands_;  // of each argument of the body
  std::vector<int> uses_;
  int anchors_ = 0;
};

}  // namespace forge::cpu
