// SPDX-License-Identifier: Apache-2.0
// A node or region to compile, in one form: a single op becomes a body of one node.
#pragma once
#include <memory>

#include "cpu_runtime/layout.h"
#include "ir/graph/module.h"

namespace forge::cpu {

// A task. Operands are numbered as in a step: operands of the node, then its results.
class Task {
 public:
  // Creates the task of a node with its types; dimensions may be symbols.
  //   errors: those of inference
  static absl::StatusOr<Task> Of(const ir::AnyOp& op, ir::TypeSpan in, ir::TypeSpan out);
  // Creates the task of a body that is not yet a node: all layouts are dense.
  static absl::StatusOr<Task> OfBody(const ir::Function& body);

  const ir::Function& body() const { return *body_; }
  // The anchor: the node that is neither element-wise nor a movement; null when there is none.
  const ir::Node* anchor() const { return anchor_; }
  size_t operands() const { return types_.size(); }
  size_t first_result() const { return first_result_; }
  size_t results() const { return types_.size() - first_result_; }
  const ir::Type& type(size_t operand) const { return types_[operand]; }
  // The value of the body that is result `i`.
  uint32_t result_value(size_t i) const { return body_->results()[i].value; }
  // The operand that a value of the body is; nullopt when it is computed.
  std::optional<uint32_t> OperandOf(uint32_t value) const;
  // A number that every element of the value is; nullopt otherwise.
  std::optional<Number> LiteralOf(uint32_t value) const;
  // Nodes, results and updates that read a value.
  int UsesOf(uint32_t value) const { return uses_[value]; }
  // The view of an operand.
  //   errors: those of ViewOf
  absl::StatusOr<View> ViewOfOperand(size_t operand) const { return ViewOf(types_[operand]); }

 private:
  absl::Status Read();
  std::shared_ptr<ir::Function> own_;  // the body of a single op
  const ir::Function* body_ = nullptr;
  const ir::Node* anchor_ = nullptr;
  ir::Types types_;
  size_t first_result_ = 0;
  std::vector<uint32_t> argument_operands_;  // operand of each argument of the body
  std::vector<int> uses_;
  int anchors_ = 0;
};

}  // namespace forge::cpu
