// SPDX-License-Identifier: Apache-2.0
// What LSTM, GRU and RNN share: the products of the input for all steps, then the steps of each
// direction.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class Direction : uint8_t { kForward, kReverse, kBidirectional };

inline constexpr std::string_view kDirectionHelp =
    "Of the steps; y of both directions lie side by side.";

// Runs one layer. `in`: x [s, n, i], weight_x [d, g, i], weight_h [d, g, h], then bias_x, bias_h,
// lengths, and what else the steps take, with an axis of directions in front.
//   steps: the op of one direction
//   returns y [s, n, d * h], then each state [d, n, h]
Values RunLayer(Function& f, Direction direction, ValueSpan in,
                absl::FunctionRef<AnyOp(bool reverse)> steps);

}  // namespace forge::ir
