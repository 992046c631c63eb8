// SPDX-License-Identifier: Apache-2.0
#include "runtime/training_session.h"

#include <algorithm>

namespace forge {
namespace {

TrainingSession::Grades GradesOf(std::span<const NamedTensor> results) {
  TrainingSession::Grades grades;
  for (const NamedTensor& r : results) {
    if (r.name == "loss") grades.loss = r.value.f64(0);
    if (r.name == "correct") grades.correct = r.value.f64(0);
    if (r.name == "gradient_norm") grades.gradient_norm = r.value.f64(0);
  }
  return grades;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingSession>> TrainingSession::Create(
    std::unique_ptr<ir::Module> module, DeviceRef device, const ir::TrainingOptions& training,
    SessionOptions options) {
  std::unique_ptr<TrainingSession> out(new TrainingSession(training.accumulate));
  FORGE_ASSIGN_OR_RETURN(ir::TrainingVariables variables, AddTraining(*module, training));
  out->activations_ = std::move(variables.activations);
  const auto& trained = variables.averages.empty() ? variables.parameters : variables.averages;
  for (size_t i = 0; i < trained.size(); ++i)
    out->parameters_.push_back({variables.parameters[i]->name, trained[i]->name});
  const ir::Function& main = *module->Find(training.function);
  out->prediction_ = main.type(main.results()[0].value);
  options.functions = {"train", "evaluate", "read_variables", "write_variables"};
  if (training.accumulate > 1) options.functions.emplace_back("accumulate");
  options.freeze = false;
  options.precision = {.fast = training.precision.fast};  // products are rounded already
  auto model = std::make_shared<const Model>(std::move(module));
  FORGE_ASSIGN_OR_RETURN(out->session_,
                         Session::Create(std::move(model), std::move(device), std::move(options)));
  return out;
}

absl::StatusOr<TrainingSession::Grades> TrainingSession::Step(std::span<const NamedTensor> batch,
                                                              double learning_rate) {
  const std::lock_guard lock(mutex_);
  const bool updates = (batches_ + 1) % accumulate_ == 0;
  FORGE_ASSIGN_OR_RETURN(const Grades grades,
                         updates ? Update(batch, learning_rate) : Accumulate(batch));
  ++batches_;
  return grades;
}

absl::StatusOr<TrainingSession::Grades> TrainingSession::Update(std::span<const NamedTensor> batch,
                                                                double learning_rate) {
  std::vector<NamedTensor> inputs(batch.begin(), batch.end());
  inputs.push_back({"learning_rate", ir::HostValue::Scalar(DType::kF32, learning_rate)});
  return Train(inputs, kTrain);
}

absl::StatusOr<TrainingSession::Grades> TrainingSession::Accumulate(
    std::span<const NamedTensor> batch) {
  return Train(batch, kAccumulate);
}

absl::StatusOr<TrainingSession::Grades> TrainingSession::Train(std::span<const NamedTensor> inputs,
                                                               Function function) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> results,
                         observer_ == nullptr ? session_->Run(inputs, function)
                                              : session_->RunStepwise(inputs, observer_, function));
  return GradesOf(results);
}

absl::StatusOr<TrainingSession::Grades> TrainingSession::Evaluate(
    std::span<const NamedTensor> batch) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> results, session_->Run(batch, kEvaluate));
  return GradesOf(results);
}

absl::StatusOr<std::vector<NamedTensor>> TrainingSession::Variables() {
  return session_->Run({}, kRead);
}

absl::Status TrainingSession::SetVariables(std::span<const NamedTensor> variables) {
  return session_->Run(variables, kWrite).status();
}

absl::StatusOr<std::vector<NamedTensor>> TrainingSession::Parameters() {
  FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> all, Variables());
  std::vector<NamedTensor> out;
  for (const Parameter& p : parameters_) {
    const auto found = std::ranges::find(all, p.read, &NamedTensor::name);
    FORGE_CHECK(found != all.end());
    out.push_back({p.name, std::move(found->value)});
  }
  return out;
}

absl::Status SetInitialValues(ir::Module& module, std::span<const NamedTensor> values) {
  for (const NamedTensor& t : values) {
    ir::Variable* const v = module.FindVariable(t.name);
    if (v == nullptr) return InvalidArgument("the model has no variable '{}'", t.name);
    if (v->type != t.value.type())
      return InvalidArgument("variable '{}' is {}, not {}", t.name, v->type.ToText(),
                             t.value.type().ToText());
    v->init = ir::Variable::Storage{t.value.shared_bytes(), v->type, {}};
  }
  return absl::OkStatus();
}

}  // namespace forge
