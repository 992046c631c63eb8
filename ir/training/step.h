// SPDX-License-Identifier: Apache-2.0
// Training steps as functions of a module.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/training/optimizer.h"
#include "ir/training/rematerialise.h"
#include "ir/type/precision.h"

namespace forge::ir {

struct TrainingOptions {
  std::string function = "main";       // its first result is the prediction
  std::string loss = "cross_entropy";  // one of LossNames()
  OptimizerOptions optimizer;
  std::function<bool(const Variable&)> trains;  // the parameters that are updated; null: all
  double clip_value = 0;       // the largest size of an element of a gradient; 0: no limit
  double clip_norm = 0;        // the largest norm of all gradients together; 0: no limit
  bool gradient_norm = false;  // whether "train" returns that norm even without a limit
  // Of products and convolutions in "train" and "accumulate". With kF16 the loss is scaled so that
  // its gradients do not vanish, and there is no update where one of them is not finite.
  Precision precision;
  int accumulate = 1;  // batches whose gradients make one update
  // Of the average of each parameter over the updates, average * decay + parameter * (1 - decay),
  // which begins as the parameter; 0: none.
  double average_decay = 0;
  // Bytes of results of the forward part that a step may keep for its gradients; what does not fit
  // is computed again. 0: no limit.
  uint64_t activation_budget = 0;
  std::map<std::string, int64_t> sizes;  // of the symbols of the function, for the budget
};

// What AddTraining added.
struct TrainingVariables {
  std::vector<Variable*> parameters;  // those that "train" updates
  std::vector<Variable*> states;      // of the optimiser, and all others that "train" updates
  std::vector<Variable*> averages;    // of the parameters; a part of `states`, empty without them
  ActivationPlan activations;         // with a budget
};

// "cross_entropy, mse ... or poisson_nll"
std::string LossNames();

// Adds functions to a module; a Session that runs them needs SessionOptions::freeze = false.
//   "train": inputs of `function`, then "label" and "learning_rate" (an f32 scalar); results
//     "loss", "correct" with cross_entropy, and "gradient_norm" where options need it (asked for,
//     limited, or with a scaled loss); updates parameters and states
//   "accumulate", where several batches make one update: inputs of `function`, then "label"; the
//     results "loss" and "correct"; adds to the gradients that the next "train" uses
//   "evaluate": inputs of `function`, then "label"; the same results without the norm; updates
//     nothing, and uses the averages of the parameters where there are some
//   "read_variables": no input; the parameters and states, as TrainingVariables lists them
//   "write_variables": stores inputs of these names in the parameters and states; the result "one"
//     is 1
// The loss is the mean over the batch. With cross_entropy `label` is i64 [batch], the prediction
// holds scores [batch, classes], or a softmax of them, which is then left out of the loss. With the
// other losses, which are those of torch.nn.functional, `label` has the type of the prediction.
// Parameters are the f32 variables of role kParameter that `function` reads, except the statistics
// of batch norms.
//   errors: InvalidArgument (no such function or loss, a prediction that does not fit the loss, no
//   parameter that is updated, a budget and a symbol without a size), Unimplemented (an op without
//   a gradient)
absl::StatusOr<TrainingVariables> AddTraining(Module& m, const TrainingOptions& options);

}  // namespace forge::ir
