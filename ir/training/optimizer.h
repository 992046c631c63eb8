// SPDX-License-Identifier: Apache-2.0
// Optimisers as nodes of a function, with their state in variables of the module.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

namespace forge::ir {

enum class OptimizerKind : uint8_t { kSgd, kAdam, kAdamW, kAdagrad, kRmsprop, kLion, kMuon };

// The options of torch.optim's optimisers, and of Lion.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0;                // SGD, RMSprop, Muon
  bool nesterov = false;              // SGD, Muon
  double beta1 = 0.9, beta2 = 0.999;  // Adam, AdamW, Lion, and what Muon leaves to AdamW
  double alpha = 0.99;                // RMSprop
  double epsilon = 1e-8;              // all but SGD and Lion
  // AdamW, Lion and Muon: shrinks the parameter; others: added to the gradient.
  double weight_decay = 0;
  // The matrices that Muon leaves to AdamW beside all vectors, such as embeddings; null: none.
  std::function<bool(const Variable&)> by_adamw;
  std::function<bool(const Variable&)> decays;  // the parameters with weight decay; null: all
  // What the learning rate is multiplied by for a parameter; null: 1 for all.
  std::function<double(const Variable&)> rate_factor;
};

// Returns the options that the source of an optimiser has by default.
OptimizerOptions DefaultsOf(OptimizerKind kind);
// errors: InvalidArgument (lists the names)
absl::StatusOr<OptimizerKind> ParseOptimizer(std::string_view name);
std::string OptimizerNames();  // "sgd, adam ... or lion"

// Stores `value`, or what the variable was where `commits` is false, and returns it.
//   commits: bool scalar; absent: true
Value StoreIf(Value commits, Variable* v, Value value);

struct StepInputs {
  Value learning_rate;  // f32 scalar
  Value commits = {};   // bool scalar: false leaves everything as it is; absent: true
};

// Appends one step to `f` and returns the parameters after it: stores each parameter and the
// optimiser's states, which are variables of f.module() named as torch names them:
// "PARAMETER.momentum", "PARAMETER.exp_avg", "PARAMETER.exp_avg_sq", "PARAMETER.sum",
// "PARAMETER.square_avg" and "optimizer.step".
//   gradients: of the types of the parameters, f32
// Muon takes a parameter of more than two axes as a matrix with as many rows as its first axis has,
// computes in f32, and scales its change like AdamW's ("match_rms_adamw"), so that one rate fits
// both.
//   source: torch.optim; Chen et al., "Symbolic discovery of optimization algorithms", 2023 (Lion)
absl::StatusOr<Values> AppendStep(Function& f, const OptimizerOptions& options,
                                  const StepInputs& in, std::span<Variable* const> parameters,
                                  ValueSpan gradients);

}  // namespace forge::ir
