// SPDX-License-Identifier: Apache-2.0
// Optimisers as nodes of a function, with their state in variables of the module.
#pragma once
#include <string_view>

#include "ir/graph/module.h"

namespace forge::ir {

enum class OptimizerKind : uint8_t { kSgd, kAdam, kAdamW };

// The options of torch.optim's SGD, Adam and AdamW.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0;  // SGD
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // Adam, AdamW
  double weight_decay = 0;  // SGD and Adam: added to the gradient; AdamW: shrinks the parameter
};

// errors: InvalidArgument (lists the names)
absl::StatusOr<OptimizerKind> ParseOptimizer(std::string_view name);

// Appends one step to `f`: stores each parameter and the optimiser's states, which are variables
// of f.module() named "PARAMETER.momentum", "PARAMETER.exp_avg", "PARAMETER.exp_avg_sq" and
// "optimizer.step".
//   learning_rate: f32 scalar     gradients: of the types of the parameters, f32
//   source: torch.optim
absl::Status AppendStep(Function& f, const OptimizerOptions& options, Value learning_rate,
                        std::span<Variable* const> parameters, ValueSpan gradients);

}  // namespace forge::ir
