// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/program.h"

namespace forge::vk {

std::vector<KernelStatistic> VulkanProgram::statistics() const {
  std::vector<KernelStatistic> all;
  for (const PlannedLaunch& l : parts_.launches)
    all.insert(all.end(), l.pipeline->statistics.begin(), l.pipeline->statistics.end());
  return all;
}

std::vector<Artifact> VulkanProgram::artifacts() const {
  return parts_.artifacts ? parts_.artifacts() : std::vector<Artifact>();
}

}  // namespace forge::vk
