// SPDX-License-Identifier: Apache-2.0
// A CUDA program: kernels, their operands and grids.
#pragma once
#include <functional>

#include "codegen/target/step_plan.h"
#include "cuda_runtime/kernels/kernel_store.h"

namespace forge::cuda {

// One launch with its kernel.
struct PlannedLaunch : codegen::LaunchPlan {
  LoadedKernelRef loaded;
};

class CudaProgram final : public Program {
 public:
  struct Parts {
    std::string kernel;
    std::vector<PlannedLaunch> launches;
    std::vector<ir::Dim> scalars;
    uint64_t scratch_bytes = 0;
    std::vector<uint32_t> overwritable;
    std::optional<Update> update;
    double seconds = 0;
    std::function<std::vector<Artifact>()> artifacts;  // made on request
  };
  explicit CudaProgram(Parts parts) : parts_(std::move(parts)) {}
  std::string_view kernel() const override { return parts_.kernel; }
  uint64_t scratch_bytes() const override { return parts_.scratch_bytes; }
  std::span<const ir::Dim> scalars() const override { return parts_.scalars; }
  std::span<const uint32_t> overwritable() const override { return parts_.overwritable; }
  std::optional<Update> update() const override { return parts_.update; }
  int dispatches() const override { return static_cast<int>(parts_.launches.size()); }
  double seconds() const override { return parts_.seconds; }
  std::vector<KernelStatistic> statistics() const override {
    std::vector<KernelStatistic> all;
    for (const PlannedLaunch& l : parts_.launches)
      all.insert(all.end(), l.loaded->statistics.begin(), l.loaded->statistics.end());
    return all;
  }
  std::vector<Artifact> artifacts() const override { return parts_.artifacts(); }
  std::span<const PlannedLaunch> launches() const { return parts_.launches; }

 private:
  Parts parts_;
};

}  // namespace forge::cuda
