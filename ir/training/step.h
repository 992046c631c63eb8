// SPDX-License-Identifier: Apache-2.0
// Training steps as functions of a module.
#pragma once
#include <string>
#include <vector>

#include "ir/training/optimizer.h"

namespace forge::ir {

struct TrainingOptions {
  std::string function = "main";       // its first result is the prediction
  std::string loss = "cross_entropy";  // or mse
  OptimizerOptions optimizer;
  double clip_norm = 0;  // the largest norm of all gradients together; 0: no limit
};

// What AddTraining added.
struct TrainingVariables {
  std::vector<Variable*> parameters;  // those that "train" updates
  std::vector<Variable*> states;      // of the optimiser
};

// Adds functions to a module; a Session that runs them needs SessionOptions::freeze = false.
//   "train": inputs of `function`, then "label" and "learning_rate" (an f32 scalar); results
//     "loss", "correct" with cross_entropy, and "gradient_norm"; updates parameters and states
//   "evaluate": inputs of `function`, then "label"; the same results without the norm; updates
//     nothing
//   "read_variables": no input; the parameters and states, as TrainingVariables lists them
//   "write_variables": stores inputs of these names in the parameters and states; the result "one"
//     is 1
// The loss is the mean over the batch. With cross_entropy `label` is i64 [batch], the prediction
// holds scores [batch, classes], or a softmax of them, which is then left out of the loss. With mse
// `label` has the type of the prediction. Parameters are the f32 variables of role kParameter that
// `function` reads, except the statistics of batch norms.
//   errors: InvalidArgument (no such function or loss, a prediction that does not fit the loss, no
//   parameter), Unimplemented (an op without a gradient)
absl::StatusOr<TrainingVariables> AddTraining(Module& m, const TrainingOptions& options);

}  // namespace forge::ir
