// SPDX-License-Identifier: Apache-2.0
// A model in training on a device: each step changes its parameters and the optimiser's states.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/training/step.h"
#include "runtime/session.h"

namespace forge {

class TrainingSession {
 public:
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
    double gradient_norm = -1;  // of a step that updates, where options need it
  };
  // Trains on a batch: every TrainingOptions::accumulate-th call updates the parameters. Threads
  // may share it.
  //   batch: the inputs of the model, and "label"     errors: as Session::Run
  absl::StatusOr<Grades> Step(std::span<const NamedTensor> batch, double learning_rate);
  // The same where the caller says which batches update; the others need `accumulate` above 1.
  absl::StatusOr<Grades> Update(std::span<const NamedTensor> batch, double learning_rate);
  absl::StatusOr<Grades> Accumulate(std::span<const NamedTensor> batch);
  absl::StatusOr<Grades> Evaluate(std::span<const NamedTensor> batch);
  // Has updates and accumulations run step by step, and passes each step to `observer`. Needs
  // SessionDebug::stepwise.
  void Observe(std::function<absl::Status(const StepView&)> observer) {
    observer_ = std::move(observer);
  }

  // The parameters, then the optimiser's states.
  absl::StatusOr<std::vector<NamedTensor>> Variables();
  // Sets all of them, in any order.
  //   errors: InvalidArgument (unknown, missing or of another type)
  absl::Status SetVariables(std::span<const NamedTensor> variables);
  // The parameters that are trained, or their averages where those are kept, by their own names.
  absl::StatusOr<std::vector<NamedTensor>> Parameters();

  Session& session() { return *session_; }
  // The inputs of a batch, with "label" among them.
  const std::vector<Session::Port>& batch() const { return session_->inputs(kEvaluate); }
  size_t variables() const { return session_->outputs(kRead).size(); }  // of Variables()
  // What the results that a step keeps for its gradients take, where they have a budget.
  const ir::ActivationPlan& activations() const { return activations_; }
  // The type of what the loss compares with the label.
  const ir::Type& prediction() const { return prediction_; }

 private:
  // The functions of the Session, as ir::AddTraining describes them.
  enum Function : uint8_t { kTrain, kEvaluate, kRead, kWrite, kAccumulate };

  explicit TrainingSession(int accumulate) : accumulate_(accumulate) {}
  absl::StatusOr<Grades> Train(std::span<const NamedTensor> inputs, Function function);
  std::unique_ptr<Session> session_;
  ir::Type prediction_;
  ir::ActivationPlan activations_;
  struct Parameter {
    std::string name, read;  // read: the variable that has its trained value
  };
  std::vector<Parameter> parameters_;
  std::function<absl::Status(const StepView&)> observer_;
  const int accumulate_;
  std::mutex mutex_;
  int64_t batches_ = 0;  // of Step()
};

// Gives variables of a module other initial values.
//   errors: InvalidArgument (no such variable, another type)
absl::Status SetInitialValues(ir::Module& module, std::span<const NamedTensor> values);

}  // namespace forge
