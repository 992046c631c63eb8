// SPDX-License-Identifier: Apache-2.0
// A model's functions lowered for a device, and their constants there.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/executable.h"
#include "runtime/keys.h"
#include "runtime/lower.h"
#include "runtime/session.h"

namespace forge {

// What all Sessions of a model share on a device.
struct ModelShare {
  explicit ModelShare(DeviceRef d) : device(d), constants(d), programs(d) {}
  DeviceRef device;
  VariableStore constants;
  ProgramCache programs;
  std::mutex computing;  // held from finding that a constant is not there until it is computed
};

// What Sessions with the same functions and outputs share.
class ModelOnDevice {
 public:
  ModelOnDevice(std::shared_ptr<ModelShare> share, Lowered lowered);
  ModelShare& share() const { return *share_; }
  const std::shared_ptr<ModelShare>& shared() const { return share_; }
  const ir::Module& module() const { return *lowered_.module; }
  std::span<const ir::Function* const> functions() const { return functions_; }

  // Uploads the constants that the functions read, and computes those that depend on others.
  //   errors: ResourceExhausted, DataLoss, those of compiling and running what computes them
  absl::Status LoadConstants(const SessionOptions& options);
  // The same for a binding, whose own module may have more of them; into `to`.
  absl::Status LoadConstants(const BoundFunctions& bound, const SessionOptions& options,
                             VariablePlaces& to) const;

 private:
  struct Job;
  absl::Status Load(const Job& job, const SessionOptions& options, VariablePlaces& to) const;
  absl::Status Compute(const Job& job, const std::vector<const ir::Variable*>& fresh,
                       VariablePlaces& all, const Executable::Options& build) const;

  std::shared_ptr<ModelShare> share_;
  Lowered lowered_;
  std::vector<const ir::Function*> functions_;
  VariableKeys keys_;      // of the constants that lowered_.load computes
  VariablePlaces places_;  // of what lowered_.functions read: held as long as this is
};

}  // namespace forge
