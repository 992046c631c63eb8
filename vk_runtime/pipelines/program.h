// SPDX-License-Identifier: Apache-2.0
// A Vulkan program: pipelines, their bindings and grids.
#pragma once
#include <functional>

#include "codegen/target/step_plan.h"
#include "vk_runtime/pipelines/pipeline.h"

namespace forge::vk {

using codegen::LaunchNumber;
using codegen::LaunchOperand;

// One launch with its pipeline.
struct PlannedLaunch : codegen::LaunchPlan {
  PipelineRef pipeline;
  double seconds = 0;  // estimated; 0: unknown
};

// The SPIR-V of a kernel as an artifact.
inline Artifact SpirvArtifact(const std::string& kernel, std::span<const uint32_t> words) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  return {kernel + ".spv", {bytes, bytes + words.size_bytes()}};
}

// A program of one or more launches.
class VulkanProgram final : public Program {
 public:
  struct Parts {
    std::string kernel;
    std::vector<PlannedLaunch> launches;
    std::vector<ir::Dim> scalars;
    uint64_t scratch_bytes = 0;
    std::vector<uint32_t> overwritable;
    std::optional<Update> update;
    double seconds = 0;
    std::function<std::vector<Artifact>()> artifacts;  // created on request
  };
  explicit VulkanProgram(Parts parts) : parts_(std::move(parts)) {}
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
      all.insert(all.end(), l.pipeline->statistics.begin(), l.pipeline->statistics.end());
    return all;
  }
  std::vector<Artifact> artifacts() const override {
    return parts_.artifacts ? parts_.artifacts() : std::vector<Artifact>();
  }
  std::span<const PlannedLaunch> launches() const { return parts_.launches; }

 private:
  Parts parts_;
};

}  // namespace forge::vk
