// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/recurrent/layer.h"
#include "ir/ops/recurrent/recurrent_steps.h"

namespace forge::ir {

struct Gru {
  Direction direction = Direction::kForward;
  bool reset_after = true;

  static constexpr OpInfo kInfo{
      .name = "gru",
      .formula = "gru_steps of x weight_x^T + bias_x, with weight_h^T and bias_h",
      .inputs =
          "x: float[s, n, i]; weight_x: =x[d, g, i]; weight_h: =x[d, g, h]; "
          "bias_x: =x[d, g]?; bias_h: =x[d, g]?; lengths: i32|i64[n]?; hidden: =x[d, n, h]?",
      .outputs = "y: =x[s, n, e]; last_hidden: =x[d, n, h]",
      .source = "ONNX GRU-14; torch.gru"};
  static constexpr Field kFields[] = {
      FieldOf<&Gru::direction>("direction", kDirectionHelp, "forward|reverse|bidirectional"),
      FieldOf<&Gru::reset_after>("reset_after", "See gru_steps.")};

  Values decompose(Function& f, ValueSpan in) const {
    return RunLayer(f, direction, in, [this](bool reverse) {
      return GruSteps{.reverse = reverse, .reset_after = reset_after};
    });
  }
  [[gnu::cold]] static Cases cases() {
    return {{Gru{}, {"float[3,2,4]", "float[1,9,4]", "float[1,9,3]", "float[1,9]", "float[1,9]"}},
            {Gru{.direction = Direction::kBidirectional},
             {"f32[4,3,2]", "f32[2,6,2]", "f32[2,6,2]", "f32[2,6]", "f32[2,6]", "", "f32[2,3,2]"}},
            {Gru{.direction = Direction::kReverse, .reset_after = false},
             {"f32[4,3,2]", "f32[1,6,2]", "f32[1,6,2]", "", "f32[1,6]", "i64[3] in 0..4"}},
            {Gru{}, {"f32[3,2,4]", "f32[2,9,4]", "f32[2,9,3]"}, "2 directions, not 1"},
            {Gru{}, {"f32[3,2,4]", "f32[1,9,4]", "f32[1,9,4]"}, "9 columns, not 3 for each"}};
  }
};
const OpDef& DefOf(const Gru*);

}  // namespace forge::ir
