// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/device/pipeline_warm_up.h"

#include "vk_runtime/device/device.h"
#include "vk_runtime/pipelines/fixed_launch.h"

namespace forge::vk {
namespace {

// Opens `device` where there is none yet.
absl::Status DispatchNothing(const ContextRef& context, const KernelCode& kernel,
                             std::shared_ptr<VulkanDevice>& device) {
  if (!device) {
    FORGE_ASSIGN_OR_RETURN(const ContextRef sibling, context->Sibling());
    FORGE_ASSIGN_OR_RETURN(device, VulkanDevice::Open(sibling, {}, {.cache = false}));
  }
  FORGE_ASSIGN_OR_RETURN(ProgramRef program,
                         MakeProgram({.code = kernel, .grid = {1, 1, 0}}, device->pipelines()));
  const Step step{.program = std::move(program), .operands = std::vector<Operand>(kernel.operands)};
  FORGE_ASSIGN_OR_RETURN(const SegmentRef segment, device->Record({.steps = {&step, 1}}));
  FORGE_ASSIGN_OR_RETURN(const Point done, device->Submit(segment, {}));
  return device->Wait(done, -1);
}

}  // namespace

size_t WarmUpPipelines(const ContextRef& context, std::span<const KernelCode> kernels,
                       int threads) {
  std::atomic<size_t> next{0}, failed{0};
  ParallelFor(static_cast<size_t>(threads), threads, [&](size_t) {
    std::shared_ptr<VulkanDevice> device;
    for (size_t i = next++; i < kernels.size(); i = next++)
      if (!DispatchNothing(context, kernels[i], device).ok()) {
        device = nullptr;
        ++failed;
      }
  });
  return failed;
}

}  // namespace forge::vk
