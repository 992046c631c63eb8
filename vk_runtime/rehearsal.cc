// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/rehearsal.h"

#include "vk_runtime/device.h"

namespace forge::vk {

absl::Status Rehearsal::Dispatch(const HandWritten& kernel, DeviceRef& device) const {
  if (!device) {
    FORGE_ASSIGN_OR_RETURN(const ContextRef sibling, context_->Sibling());
    FORGE_ASSIGN_OR_RETURN(device, VulkanDevice::Open(sibling, {}, {.cache = false}));
  }
  FORGE_ASSIGN_OR_RETURN(ProgramRef program,
                         MakeProgram(kernel, device->pipelines(), context_->rates()));
  const Step step{.program = std::move(program), .operands = std::vector<Operand>(kernel.operands)};
  FORGE_ASSIGN_OR_RETURN(const SegmentRef segment, device->Record({.steps = {&step, 1}}));
  FORGE_ASSIGN_OR_RETURN(const Point done, device->Submit(segment, {}));
  return device->Wait(done, -1);
}

absl::Status Rehearsal::Run(HandWritten kernel) {
  kernel.grid = {1, 1, 0};
  DeviceRef device;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      device = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  FORGE_RETURN_IF_ERROR(Dispatch(kernel, device));
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(device));
  return absl::OkStatus();
}

}  // namespace forge::vk
