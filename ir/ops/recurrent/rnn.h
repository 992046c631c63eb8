// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/recurrent/layer.h"
#include "ir/ops/recurrent/recurrent_steps.h"

namespace forge::ir {

struct Rnn {
  Direction direction = Direction::kForward;
  RnnActivation activation = RnnActivation::kTanh;

  static constexpr OpInfo kInfo{
      .name = "rnn",
      .formula = "rnn_steps of x weight_x^T + bias_x, with weight_h^T and bias_h",
      .inputs =
          "x: float[s, n, i]; weight_x: =x[d, h, i]; weight_h: =x[d, h, h]; "
          "bias_x: =x[d, h]?; bias_h: =x[d, h]?; lengths: i32|i64[n]?; hidden: =x[d, n, h]?",
      .outputs = "y: =x[s, n, e]; last_hidden: =x[d, n, h]",
      .source = "ONNX RNN-14; torch.rnn_tanh, torch.rnn_relu"};
  static constexpr Field kFields[] = {
      FieldOf<&Rnn::direction>("direction", kDirectionHelp, "forward|reverse|bidirectional"),
      FieldOf<&Rnn::activation>("activation", "Of the sums.", "tanh|relu")};

  Values decompose(Function& f, ValueSpan in) const {
    return RunLayer(f, direction, in, [this](bool reverse) {
      return RnnSteps{.reverse = reverse, .activation = activation};
    });
  }
  [[gnu::cold]] static Cases cases() {
    return {{Rnn{}, {"float[3,2,4]", "float[1,3,4]", "float[1,3,3]", "float[1,3]", "float[1,3]"}},
            {Rnn{.direction = Direction::kBidirectional, .activation = RnnActivation::kRelu},
             {"f32[4,3,2]", "f32[2,2,2]", "f32[2,2,2]", "f32[2,2]", "", "", "f32[2,3,2]"}},
            {Rnn{.direction = Direction::kReverse},
             {"f32[4,3,2]", "f32[1,2,2]", "f32[1,2,2]", "", "f32[1,2]", "i64[3] in 0..4"}},
            {Rnn{}, {"f32[3,2,4]", "f32[2,3,4]", "f32[2,3,3]"}, "2 directions, not 1"},
            {Rnn{}, {"f32[3,2,4]", "f32[1,3,4]", "f32[1,3,2]"}, "weight_h"}};
  }
};
const OpDef& DefOf(const Rnn*);

}  // namespace forge::ir
