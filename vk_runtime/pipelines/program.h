// SPDX-License-Identifier: Apache-2.0
// A Vulkan program: pipelines, their bindings and grids.
#pragma once
#include "codegen/target/step_plan.h"
#include "runtime/device/launched_program.h"
#include "vk_runtime/pipelines/pipeline.h"

namespace forge::vk {

using codegen::LaunchNumber;
using codegen::LaunchOperand;

// One launch with its pipeline.
struct PlannedLaunch : codegen::LaunchPlan {
  PipelineRef pipeline;
  double seconds = 0;  // estimated; 0: unknown
  std::span<const KernelStatistic> statistics() const { return pipeline->statistics; }
};

// The SPIR-V of a kernel as an artifact.
inline Artifact SpirvArtifact(const std::string& kernel, std::span<const uint32_t> words) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  return {kernel + ".spv", {bytes, bytes + words.size_bytes()}};
}

// A program of one or more launches.
using VulkanProgram = LaunchedProgram<PlannedLaunch>;

}  // namespace forge::vk
