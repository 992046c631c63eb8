// SPDX-License-Identifier: Apache-2.0
// Training through the C interface.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/graph/module.h"
#include "ir/type/precision.h"
#include "runtime/forge_c.h"
#include "runtime/training_session.h"

struct forge_training {
  std::shared_ptr<const forge::Model> model;
  std::unique_ptr<forge::TrainingSession> training;
};

namespace {

using forge::ErrorOf;
using forge::InvalidArgument;
using forge::NamedTensor;
using Json = nlohmann::json;

struct Settings {
  forge::ir::TrainingOptions training;
  forge::DeviceOptions device;
};

// Reads a member; false where it is not of that kind.
bool Read(const Json& j, double& to) {
  if (!j.is_number()) return false;
  to = j.get<double>();
  return std::isfinite(to) && to >= 0;
}
bool Read(const Json& j, int& to) {
  if (!j.is_number_integer() || j.get<int64_t>() < 0 || j.get<int64_t>() > INT32_MAX) return false;
  to = j.get<int>();
  return true;
}
template <std::same_as<int64_t> N>
bool Read(const Json& j, N& to) {
  if (!j.is_number_integer() || j.get<int64_t>() < 0) return false;
  to = j.get<int64_t>();
  return true;
}
bool Read(const Json& j, bool& to) {
  if (j.is_boolean()) to = j.get<bool>();
  return j.is_boolean();
}
bool Read(const Json& j, std::string& to) {
  if (j.is_string()) to = j.get<std::string>();
  return j.is_string();
}
bool Read(const Json& j, std::set<std::string>& to) {
  if (!j.is_array()) return false;
  for (const Json& name : j) {
    if (!name.is_string()) return false;
    to.insert(name.get<std::string>());
  }
  return true;
}
template <class V>
bool Read(const Json& j, std::map<std::string, V>& to) {
  if (!j.is_object()) return false;
  for (const auto& [name, value] : j.items())
    if (!Read(value, to[name])) return false;
  return true;
}

// Names that no parameter of the model has are mistakes.
absl::Status CheckNames(const forge::ir::Module& module, const char* key,
                        const std::set<std::string>& names) {
  for (const std::string& name : names)
    if (module.FindVariable(name) == nullptr)
      return InvalidArgument("{}: the model has no variable '{}'", key, name);
  return absl::OkStatus();
}

absl::StatusOr<Settings> ParseSettings(const forge::ir::Module& module, const char* text) {
  const Json json = Json::parse(text == nullptr ? "{}" : text, nullptr, false);
  if (!json.is_object()) return InvalidArgument("the options are no JSON object");
  Settings s;
  forge::ir::TrainingOptions& t = s.training;
  std::string optimizer = "sgd";
  if (json.contains("optimizer") && !Read(json["optimizer"], optimizer))
    return InvalidArgument("the optimizer is no string");
  FORGE_ASSIGN_OR_RETURN(const auto kind, forge::ir::ParseOptimizer(optimizer));
  forge::ir::OptimizerOptions& o = t.optimizer = forge::ir::DefaultsOf(kind);
  std::set<std::string> frozen, no_decay, by_adamw;
  std::map<std::string, double> rates;
  std::string precision = "exact";
  int64_t budget = 0;
  for (const auto& [key, value] : json.items()) {
    const bool known = key == "optimizer"           ? true
                       : key == "function"          ? Read(value, t.function)
                       : key == "loss"              ? Read(value, t.loss)
                       : key == "momentum"          ? Read(value, o.momentum)
                       : key == "nesterov"          ? Read(value, o.nesterov)
                       : key == "beta1"             ? Read(value, o.beta1)
                       : key == "beta2"             ? Read(value, o.beta2)
                       : key == "alpha"             ? Read(value, o.alpha)
                       : key == "epsilon"           ? Read(value, o.epsilon)
                       : key == "weight_decay"      ? Read(value, o.weight_decay)
                       : key == "clip_value"        ? Read(value, t.clip_value)
                       : key == "clip_norm"         ? Read(value, t.clip_norm)
                       : key == "gradient_norm"     ? Read(value, t.gradient_norm)
                       : key == "accumulate"        ? Read(value, t.accumulate) && t.accumulate > 0
                       : key == "precision"         ? Read(value, precision)
                       : key == "average_decay"     ? Read(value, t.average_decay)
                       : key == "activation_budget" ? Read(value, budget)
                       : key == "sizes"             ? Read(value, t.sizes)
                       : key == "frozen"            ? Read(value, frozen)
                       : key == "no_decay"          ? Read(value, no_decay)
                       : key == "by_adamw"          ? Read(value, by_adamw)
                       : key == "rates"             ? Read(value, rates)
                       : key == "threads"           ? Read(value, s.device.threads)
                                                    : false;
    if (!known)
      return InvalidArgument("there is no option '{}', or {} is no value of it", key, value.dump());
  }
  FORGE_ASSIGN_OR_RETURN(t.precision, forge::ir::ParsePrecision(precision));
  t.activation_budget = static_cast<uint64_t>(budget);
  if (t.average_decay >= 1) return InvalidArgument("average_decay is not below 1");
  std::set<std::string> with_rates;
  for (const auto& [name, factor] : rates) with_rates.insert(name);
  FORGE_RETURN_IF_ERROR(CheckNames(module, "frozen", frozen));
  FORGE_RETURN_IF_ERROR(CheckNames(module, "no_decay", no_decay));
  FORGE_RETURN_IF_ERROR(CheckNames(module, "by_adamw", by_adamw));
  FORGE_RETURN_IF_ERROR(CheckNames(module, "rates", with_rates));
  t.trains = [frozen](const forge::ir::Variable& v) { return !frozen.contains(v.name); };
  o.decays = [no_decay](const forge::ir::Variable& v) { return !no_decay.contains(v.name); };
  o.by_adamw = [by_adamw](const forge::ir::Variable& v) { return by_adamw.contains(v.name); };
  o.rate_factor = [rates](const forge::ir::Variable& v) {
    const auto at = rates.find(v.name);
    return at == rates.end() ? 1.0 : at->second;
  };
  return s;
}

absl::Status Create(const forge_model* model, const char* device, const char* options,
                    forge_training** training) {
  if (model == nullptr || training == nullptr)
    return InvalidArgument("model and training must not be NULL");
  FORGE_ASSIGN_OR_RETURN(const Settings settings, ParseSettings(model->model->module(), options));
  FORGE_ASSIGN_OR_RETURN(forge::DeviceRef opened,
                         forge::SharedDevice(device ? device : "auto", settings.device));
  auto made = std::make_unique<forge_training>();
  made->model = model->model;
  FORGE_ASSIGN_OR_RETURN(made->training,
                         forge::TrainingSession::Create(forge::ir::Clone(model->model->module()),
                                                        std::move(opened), settings.training));
  *training = made.release();
  return absl::OkStatus();
}

struct Given {
  const forge_tensor* const* tensors = nullptr;
  size_t count = 0;
};

// Grades a batch by `run`.
template <class Run>
forge_error* Grade(forge_training* training, const Given& batch, forge_grades* grades, Run run) {
  return ErrorOf([&]() -> absl::Status {
    if (training == nullptr || grades == nullptr)
      return InvalidArgument("training and grades must not be NULL");
    FORGE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors,
                           forge::TensorsOf(batch.tensors, batch.count));
    FORGE_ASSIGN_OR_RETURN(const forge::TrainingSession::Grades g, run(tensors));
    *grades = {g.loss, g.correct, g.gradient_norm};
    return absl::OkStatus();
  });
}

}  // namespace

extern "C" {

forge_error* forge_training_create(const forge_model* model, const char* device,
                                   const char* options, forge_training** training) {
  return ErrorOf([&] { return Create(model, device, options, training); });
}

forge_error* forge_training_step(forge_training* training, const forge_tensor* const* batch,
                                 size_t count, double learning_rate, forge_grades* grades) {
  return Grade(training, {batch, count}, grades, [&](const auto& tensors) {
    return training->training->Step(tensors, learning_rate);
  });
}

forge_error* forge_training_evaluate(forge_training* training, const forge_tensor* const* batch,
                                     size_t count, forge_grades* grades) {
  return Grade(training, {batch, count}, grades,
               [&](const auto& tensors) { return training->training->Evaluate(tensors); });
}

size_t forge_training_variable_count(const forge_training* training) {
  return training->training->variables();
}

forge_error* forge_training_read(forge_training* training, forge_tensor** variables, size_t count) {
  return ErrorOf([&]() -> absl::Status {
    if (training == nullptr || variables == nullptr || count < training->training->variables())
      return InvalidArgument("training and variables must not be NULL, and as many as there are");
    FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> all, training->training->Variables());
    std::vector<std::unique_ptr<forge_tensor>> made;
    for (NamedTensor& t : all) made.push_back(forge::WrapTensor(std::move(t)));
    for (size_t i = 0; i < made.size(); ++i) variables[i] = made[i].release();
    return absl::OkStatus();
  });
}

forge_error* forge_training_write(forge_training* training, const forge_tensor* const* variables,
                                  size_t count) {
  return ErrorOf([&]() -> absl::Status {
    if (training == nullptr) return InvalidArgument("training must not be NULL");
    FORGE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> all, forge::TensorsOf(variables, count));
    return training->training->SetVariables(all);
  });
}

forge_error* forge_training_model(forge_training* training, forge_model** model) {
  return ErrorOf([&]() -> absl::Status {
    if (training == nullptr || model == nullptr)
      return InvalidArgument("training and model must not be NULL");
    FORGE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> trained,
                           training->training->Parameters());
    auto module = forge::ir::Clone(training->model->module());
    FORGE_RETURN_IF_ERROR(forge::SetInitialValues(*module, trained));
    *model = forge::WrapModel(std::make_shared<const forge::Model>(std::move(module)));
    return absl::OkStatus();
  });
}

void forge_training_cancel(forge_training* training) { training->training->session().Cancel(); }
void forge_training_free(forge_training* training) { delete training; }

}  // extern "C"
