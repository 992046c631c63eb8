// SPDX-License-Identifier: Apache-2.0
// The gradients of recurrent_steps.h, from the last step that ran to the first.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class StepCell : uint8_t { kLstm, kGru, kTanh, kRelu };

// Of lstm_steps without peepholes, of gru_steps that resets after the product, and of rnn_steps.
struct StepsGradient {
  StepCell cell = StepCell::kLstm;
  bool reverse = false;

  static constexpr OpInfo kInfo{
      .name = "steps_gradient",
      .formula =
          "d_sums: of the sums of input and recurrent product, which are those of lstm_steps and "
          "rnn_steps; of gru_steps those of r and z, then both parts of n: the product and the "
          "input. dh of the step before: d_sums weight^T, and z dh",
      .inputs =
          "sums: float[s, n, p]; weight: =sums[h, g]; hidden: =sums[s, n, h]?; "
          "first_cell: =sums[n, h]?; lengths: i32|i64[n]?; dy: =sums[s, n, h]?; "
          "d_last_hidden: =sums[n, h]?; d_last_cell: =sums[n, h]?",
      .outputs = "d_sums: =sums; d_first: =sums[k, n, h]",
      .source = "torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu"};
  static constexpr Field kFields[] = {
      FieldOf<&StepsGradient::cell>(
          "cell",
          "Whose steps. hidden, the state before each step, is of gru; "
          "first_cell is of lstm, whose d_first has that of the cell, too.",
          "lstm|gru|tanh|relu"),
      FieldOf<&StepsGradient::reverse>("reverse", "As that of the steps.")};

  // The places of operands.
  enum Operand : uint8_t {
    kSums,
    kWeight,
    kHidden,
    kFirstCell,
    kLengths,
    kDy,
    kLastHidden,
    kLastCell
  };
  // Parts of the sums, of h columns each, and those of them that are columns of the product.
  int64_t parts() const { return is_lstm() || cell == StepCell::kGru ? 4 : 1; }
  int64_t gates() const { return cell == StepCell::kGru ? 3 : parts(); }
  bool is_lstm() const { return cell == StepCell::kLstm; }

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;  // steps must be a number
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const StepsGradient*);

// The gradients of the operands of steps (StepOperand): one kernel for all steps, and products of
// all steps at once. The sums of the gates are computed again, in one product.
Values GradientOfSteps(const GradArgs& g, StepCell cell, bool reverse);

}  // namespace forge::ir
