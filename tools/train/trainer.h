// SPDX-License-Identifier: Apache-2.0
// Trains a model on a device: steps, epochs, evaluation, checkpoints.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/training_session.h"
#include "tools/run/step_times.h"
#include "tools/train/batches.h"
#include "tools/train/checkpoint.h"
#include "tools/train/schedule.h"

namespace forge::tools {

struct TrainerOptions {
  ir::TrainingOptions training;
  Schedule schedule;  // its number of steps is set by the trainer
  int epochs = 1, batch = 64, warmup = 0;
  uint64_t seed = 0;
  Augment augment;
  bool time_steps = false;                     // fills times()
  bool check_nan = false;                      // runs op by op, and stops at the first NaN
  std::string checkpoint;                      // folder; empty: none
  std::map<std::string, std::string> options;  // stored in checkpoints
};

// Means over the samples of an epoch, or of an evaluation.
struct EpochResult {
  int64_t epoch = 0;                                                    // counted from 1
  double loss = 0, accuracy = -1, seconds = 0, samples_per_second = 0;  // accuracy below 0: none
};

class Trainer {
 public:
  // Adds the training functions to `module` and opens a Session.
  //   errors: those of AddTraining and Session::Create
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(std::unique_ptr<ir::Module> module,
                                                         DeviceRef device, TrainerOptions options);
  // What the data must fit.
  DataPorts Ports() const;
  // Continues where a checkpoint was written.
  //   errors: those of ReadCheckpoint; InvalidArgument (variables of another model)
  absl::Status Resume(const std::string& checkpoint);
  // Trains until the last epoch, or until `stop` returns true between two steps; a checkpoint is
  // written after each epoch and before stopping.
  //   after: called after each epoch     progress: called after each step
  //   errors: Aborted (stopped), Internal (a loss that is not finite, or a NaN, with the step),
  //   those of Run
  struct Moment {
    int64_t epoch, done, total;  // samples of the epoch
    double loss, rate;           // the mean so far; samples in a second
    int64_t step;                // updates of the whole training
    double batch_loss;
  };
  struct Watch {
    std::function<bool()> stop;
    std::function<void(const Moment&)> progress;
    std::function<absl::Status(const EpochResult&)> after;
  };
  absl::Status Train(const DataSet& data, const Watch& watch);
  absl::StatusOr<EpochResult> Evaluate(const DataSet& data);
  // The trained parameters, as the device has them, or their averages where those are kept.
  absl::StatusOr<std::vector<NamedTensor>> Parameters() { return training_->Parameters(); }
  // What the results that a step keeps for its gradients take, where they have a budget.
  const ir::ActivationPlan& activations() const { return training_->activations(); }
  // Memory of a step: all values of its plan, without parameters and states; 0: it runs in parts.
  uint64_t step_bytes() const { return step_bytes_; }
  // The times of the steps of whole batches.
  const StepTimes& times() const { return times_; }

 private:
  Trainer() = default;
  Session& session() { return training_->session(); }
  // Fewer than there are where the model takes whole batches only.
  absl::StatusOr<int64_t> SamplesUsed(const DataSet& data) const;
  absl::Status TrainEpoch(const DataSet& data, int64_t used, const Watch& watch);
  //   updates: false: it only adds to the gradients of the next step that does
  absl::Status Step(const DataSet& data, std::span<const int64_t> at, bool updates);
  absl::Status RefuseNan(const StepView& step) const;
  absl::Status Save();
  EpochResult ResultOf(int64_t samples, double loss, double correct) const;

  TrainerOptions o_;
  DataPorts ports_;
  std::unique_ptr<TrainingSession> training_;
  Position at_;
  double batch_loss_ = 0;
  uint64_t step_bytes_ = 0;
  StepTimes times_;
};

}  // namespace forge::tools
