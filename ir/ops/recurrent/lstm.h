// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/axes.h"
#include "ir/ops/recurrent/layer.h"
#include "ir/ops/recurrent/recurrent_steps.h"

namespace forge::ir {

struct Lstm {
  Direction direction = Direction::kForward;

  static constexpr OpInfo kInfo{
      .name = "lstm",
      .formula = "lstm_steps of x weight_x^T + bias_x, with weight_h^T and bias_h",
      .inputs =
          "x: float[s, n, i]; weight_x: =x[d, g, i]; weight_h: =x[d, g, h]; "
          "bias_x: =x[d, g]?; bias_h: =x[d, g]?; lengths: i32|i64[n]?; hidden: =x[d, n, h]?; "
          "cell: =x[d, n, h]?; peepholes: =x[d, p]?",
      .outputs = "y: =x[s, n, e]; last_hidden: =x[d, n, h]; last_cell: =x[d, n, h]",
      .source = "ONNX LSTM-14; torch.lstm"};
  static constexpr Field kFields[] = {
      FieldOf<&Lstm::direction>("direction", kDirectionHelp, "forward|reverse|bidirectional")};

  Values decompose(Function& f, ValueSpan in) const {
    return RunLayer(f, direction, in, [](bool reverse) { return LstmSteps{.reverse = reverse}; });
  }
  [[gnu::cold]] static Cases cases() {
    constexpr Direction kBoth = Direction::kBidirectional;
    return {
        {Lstm{}, {"float[3,2,4]", "float[1,12,4]", "float[1,12,3]", "float[1,12]"}},
        {Lstm{.direction = kBoth},
         {"f32[4,3,2]", "f32[2,8,2]", "f32[2,8,2]", "f32[2,8]", "f32[2,8]", "", "f32[2,3,2]",
          "f32[2,3,2]"}},
        {.op = Lstm{},
         .in = {"f32[64,8,256]", "f32[1,1024,256]", "f32[1,1024,256]", "f32[1,1024]"},
         .bench = true},
        {Lstm{.direction = Direction::kReverse},
         {"f32[4,3,2]", "f32[1,8,2]", "f32[1,8,2]", "", "", "i32[3] in 0..4", "", "", "f32[1,6]"}},
        {Lstm{.direction = kBoth},
         {"f32[3,2,4]", "f32[1,12,4]", "f32[1,12,3]"},
         "1 directions, not 2"},
        {Lstm{}, {"f32[3,2,4]", "f32[1,12,4]", "f32[1,12,2]"}, "12 columns, not 4 for each"}};
  }
};
const OpDef& DefOf(const Lstm*);

}  // namespace forge::ir
