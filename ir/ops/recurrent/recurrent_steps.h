// SPDX-License-Identifier: Apache-2.0
// The steps of recurrent networks, after the input's products: each step reads the state that the
// step before it left. The recurrent product of a step is h weight + bias; its columns, like those
// of `gates`, are the gates one after another, each of h columns. Rows longer than their `lengths`
// keep the state and give zeros in y.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// The operands of the three ops, which have them at the same places.
enum StepOperand : uint8_t {
  kGateSums,
  kStepWeight,
  kStepBias,
  kStepLengths,
  kFirstHidden,
  kFirstCell,
  kPeepholes
};

struct LstmSteps {
  static constexpr int64_t kGates = 4, kStates = 2;
  bool reverse = false;

  static constexpr OpInfo kInfo{
      .name = "lstm_steps",
      .formula =
          "[i, f, g, o] = gates[t] + h weight + bias; c = sigmoid(f) c + sigmoid(i) tanh(g); "
          "h = sigmoid(o) tanh(c); peepholes add p_i c, p_f c and, of the new c, p_o c",
      .inputs =
          "gates: float[s, n, g]; weight: =gates[h, g]; bias: =gates[g]?; lengths: i32|i64[n]?; "
          "hidden: =gates[n, h]?; cell: =gates[n, h]?; peepholes: =gates[p]?",
      .outputs = "y: =gates[s, n, h]; last_hidden: =gates[n, h]; last_cell: =gates[n, h]",
      .source = "ONNX LSTM-14; torch.lstm"};
  static constexpr Field kFields[] = {
      FieldOf<&LstmSteps::reverse>("reverse", "From the last step to the first.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;  // steps must be a number
  Values gradient(const GradArgs& g) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const LstmSteps*);

struct GruSteps {
  static constexpr int64_t kGates = 3, kStates = 1;
  bool reverse = false, reset_after = true;

  static constexpr OpInfo kInfo{
      .name = "gru_steps",
      .formula =
          "r, z = sigmoid(gates[t] + h weight + bias); n = tanh(gates[t] + r (h weight + "
          "bias)), or tanh(gates[t] + (r h) weight + bias); h = (1 - z) n + z h",
      .inputs =
          "gates: float[s, n, g]; weight: =gates[h, g]; bias: =gates[g]?; lengths: i32|i64[n]?; "
          "hidden: =gates[n, h]?",
      .outputs = "y: =gates[s, n, h]; last_hidden: =gates[n, h]",
      .source = "ONNX GRU-14; torch.gru"};
  static constexpr Field kFields[] = {
      FieldOf<&GruSteps::reverse>("reverse", "From the last step to the first."),
      FieldOf<&GruSteps::reset_after>("reset_after",
                                      "r multiplies the recurrent product, not the state.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const GruSteps*);

enum class RnnActivation : uint8_t { kTanh, kRelu };

struct RnnSteps {
  static constexpr int64_t kGates = 1, kStates = 1;
  bool reverse = false;
  RnnActivation activation = RnnActivation::kTanh;

  static constexpr OpInfo kInfo{
      .name = "rnn_steps",
      .formula = "h = activation(gates[t] + h weight + bias)",
      .inputs =
          "gates: float[s, n, h]; weight: =gates[h, h]; bias: =gates[h]?; lengths: i32|i64[n]?; "
          "hidden: =gates[n, h]?",
      .outputs = "y: =gates[s, n, h]; last_hidden: =gates[n, h]",
      .source = "ONNX RNN-14; torch.rnn_tanh, torch.rnn_relu"};
  static constexpr Field kFields[] = {
      FieldOf<&RnnSteps::reverse>("reverse", "From the last step to the first."),
      FieldOf<&RnnSteps::activation>("activation", "Of the sum.", "tanh|relu")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const RnnSteps*);

}  // namespace forge::ir
