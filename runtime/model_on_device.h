// SPDX-License-Identifier: Apache-2.0
// The lowered functions of a model on a device, with their constants.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/plan/executable.h"
#include "runtime/plan/keys.h"
#include "runtime/plan/lower.h"
#include "runtime/session.h"

namespace forge {

// Bytes of constants on a device, by key.
using WeightSizes = std::map<std::string, uint64_t>;

// State that all Sessions of a model share on one device.
struct ModelShare {
  explicit ModelShare(DeviceRef d) : device(d), constants(d), programs(d) {}
  DeviceRef device;
  VariableStore constants;
  ProgramCache programs;
  std::mutex computing;  // held from the lookup of a missing constant until it is computed
};

// State that Sessions with the same functions and outputs share.
class ModelOnDevice {
 public:
  ModelOnDevice(std::shared_ptr<ModelShare> share, Lowered lowered);
  ModelShare& share() const { return *share_; }
  const std::shared_ptr<ModelShare>& shared() const { return share_; }
  const ir::Module& module() const { return *lowered_.module; }
  std::span<ir::Function* const> functions() const { return lowered_.functions; }
  std::span<const ir::FusionGap> gaps() const { return lowered_.gaps; }

  // The sizes, on the device, of the constants that a binding reads, by key.
  //   errors: those of BytesOf
  absl::StatusOr<WeightSizes> SizesOf(const BoundFunctions& bound) const;
  // Places the constants that a binding reads on the device, and computes those that depend on
  // others. Operands of that computation are freed after it.
  //   errors: ResourceExhausted, DataLoss, those of compiling and running the computation; Aborted
  //   when cancelled
  absl::Status LoadConstants(const BoundFunctions& bound, const SessionOptions& options,
                             const std::atomic<bool>* cancel, VariablePlaces& to) const;

 private:
  struct Computation;
  struct Loading;
  struct Batch;
  VariableKeys KeysOf(const BoundFunctions& bound) const;
  absl::Status Load(const Loading& loading, std::span<const ir::Variable* const> wanted,
                    VariablePlaces& places) const;
  absl::Status Compute(const Loading& loading, const Computation& c,
                       std::span<const ir::Variable* const> fresh,
                       const VariablePlaces& places) const;
  absl::Status Run(const Loading& loading, const ir::Function& load, const Batch& batch) const;

  std::shared_ptr<ModelShare> share_;
  Lowered lowered_;
  VariableKeys keys_;  // keys of the constants that lowered_.load computes
};

}  // namespace forge
