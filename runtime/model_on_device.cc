// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_on_device.h"

#include <algorithm>

namespace forge {
namespace {

// The constants that functions read.
std::vector<const ir::Variable*> ConstantsOf(std::span<const ir::Function* const> functions) {
  std::vector<const ir::Variable*> out;
  for (const ir::Function* f : functions)
    for (const auto& r : f->reads())
      if (r.variable->role == ir::Variable::Role::kConstant) out.push_back(r.variable);
  return out;
}

std::vector<VariableStore::Keyed> WithKeys(std::span<const ir::Variable* const> variables,
                                           const VariableKeys& keys) {
  std::vector<VariableStore::Keyed> out;
  out.reserve(variables.size());
  for (const ir::Variable* v : variables) out.push_back({v, keys.Of(*v)});
  return out;
}

}  // namespace

// Constants to load: those that `users` read, which `load` computes into variables of `owner`.
struct ModelOnDevice::Job {
  const ir::Module& owner;
  const ir::Function& load;
  std::span<const ir::Function* const> users;
  const VariableKeys& keys;
};

ModelOnDevice::ModelOnDevice(std::shared_ptr<ModelShare> share, Lowered lowered)
    : share_(std::move(share)),
      lowered_(std::move(lowered)),
      functions_(lowered_.functions.begin(), lowered_.functions.end()) {
  keys_.AddComputed(*lowered_.module, *lowered_.load);
}

absl::Status ModelOnDevice::LoadConstants(const SessionOptions& options) {
  return Load({*lowered_.module, *lowered_.load, functions_, keys_}, options, places_);
}

absl::Status ModelOnDevice::LoadConstants(const BoundFunctions& bound,
                                          const SessionOptions& options, VariablePlaces& to) const {
  const ir::Function* users[] = {bound.main};
  VariableKeys keys = keys_;
  keys.AddComputed(*bound.module, *bound.load);
  return Load({*bound.module, *bound.load, users, keys}, options, to);
}

// Computes those results of `load` that are fresh.
absl::Status ModelOnDevice::Compute(const Job& job, const std::vector<const ir::Variable*>& fresh,
                                    VariablePlaces& all, const Executable::Options& build) const {
  std::vector<std::string> names;
  std::vector<VariablePlace> into;
  for (const auto& r : job.load.results()) {
    const ir::Variable* v = job.owner.FindVariable(r.name);
    if (std::find(fresh.begin(), fresh.end(), v) == fresh.end()) continue;
    names.push_back(r.name);
    into.push_back(*all.at(v));
  }
  if (names.empty()) return absl::OkStatus();
  ir::Function wanted(job.load.name(), job.load.module());
  FORGE_RETURN_IF_ERROR(KeepResults(job.load, wanted, names));
  const ir::Function* reader[] = {&wanted};
  FORGE_RETURN_IF_ERROR(
      share_->constants.Add(WithKeys(ConstantsOf(reader), job.keys), all).status());
  const VariablePlaces* places[] = {&all};
  FORGE_ASSIGN_OR_RETURN(
      std::unique_ptr<Executable> e,
      Executable::Build({share_->device, wanted, places, share_->programs, into}, build));
  return e->RunForVariables();
}

absl::Status ModelOnDevice::Load(const Job& job, const SessionOptions& options,
                                 VariablePlaces& to) const {
  Executable::Options build{.compile_only = options.compile_only};
  if (options.progress)
    build.progress = [&](size_t done, size_t total) {
      options.progress("packing weights", done, total);
    };
  if (options.compile_only)
    return Executable::Build({share_->device, job.load, {}, share_->programs, {}}, build).status();
  const std::vector<const ir::Variable*> read = ConstantsOf(job.users);
  std::vector<const ir::Variable*> needed = read;
  for (const auto& r : job.load.results()) needed.push_back(job.owner.FindVariable(r.name));
  std::lock_guard lock(share_->computing);
  VariablePlaces all;  // let go before the lock is, so that nobody meets what was not computed
  FORGE_ASSIGN_OR_RETURN(const std::vector<const ir::Variable*> fresh,
                         share_->constants.Add(WithKeys(needed, job.keys), all));
  FORGE_RETURN_IF_ERROR(Compute(job, fresh, all, build));
  for (const ir::Variable* v : read) to[v] = all.at(v);
  return absl::OkStatus();
}

}  // namespace forge
