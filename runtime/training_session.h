// SPDX-License-Identifier: Apache-2.0
// A model in training on a device: each step changes its parameters and the optimiser's states.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/training/step.h"
#include "runtime/session.h"

namespace forge {

class TrainingSession {
 public:
  // The functions of session(), as ir::AddTraining describes them.
  enum Function : uint8_t { kTrain, kEvaluate, kRead, kWrite, kAccumulate };

  // Adds the functions that train `module`.
  //   options: `functions` and `freeze` are set here
  //   errors: those of ir::AddTraining and Session::Create
  static absl::StatusOr<std::unique_ptr<TrainingSession>> Create(
      std::unique_ptr<ir::Module> module, DeviceRef device, const ir::TrainingOptions& training,
      SessionOptions options = {});

  // Means over a batch; below 0: not computed.
  struct Grades {
    double loss = 0;
    double correct = -1;        // how many samples, with cross_entropy
    double gradient_norm = -1;  // of a step that updates
  };
  // Trains on a batch: every TrainingOptions::accumulate-th call updates the parameters.
  //   batch: the inputs of the model, and "label"     errors: as Session::Run
  absl::StatusOr<Grades> Step(std::span<const NamedTensor> batch, double learning_rate);
  absl::StatusOr<Grades> Evaluate(std::span<const NamedTensor> batch);

  // The parameters, then the optimiser's states.
  absl::StatusOr<std::vector<NamedTensor>> Variables();
  // Sets all of them, in any order.
  //   errors: InvalidArgument (unknown, missing or of another type)
  absl::Status SetVariables(std::span<const NamedTensor> variables);
  // The parameters that are trained, or their averages where those are kept, by their own names.
  absl::StatusOr<std::vector<NamedTensor>> Parameters();

  Session& session() { return *session_; }
  // The type of what the loss compares with the label.
  const ir::Type& prediction() const { return prediction_; }

 private:
  TrainingSession() = default;
  std::unique_ptr<Session> session_;
  ir::Type prediction_;
  struct Parameter {
    std::string name, read;  // read: the variable that has its trained value
  };
  std::vector<Parameter> parameters_;
  int accumulate_ = 1;
  int64_t batches_ = 0;
};

// Gives variables of a module other initial values.
//   errors: InvalidArgument (no such variable, another type)
absl::Status SetInitialValues(ir::Module& module, std::span<const NamedTensor> values);

}  // namespace forge
