// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/submission/signals.h"

#include <algorithm>

namespace forge::vk {

absl::StatusOr<Signal> Signals::Next() {
  if (!context_->abilities().timeline_semaphore) {
    FORGE_ASSIGN_OR_RETURN(
        OwnedFence fence,
        context_->Make<OwnedFence>(Typed<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO)));
    return Signal{.fence = std::make_shared<OwnedFence>(std::move(fence))};
  }
  if (!semaphore_) {
    auto type = Typed<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    auto info = Typed<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
    info.pNext = &type;
    FORGE_ASSIGN_OR_RETURN(semaphore_, context_->Make<OwnedSemaphore>(info));
  }
  return Signal{.tick = last_tick_ + 1, .fence = nullptr};
}

absl::StatusOr<Signal> Signals::Submit(std::span<const VkCommandBuffer> commands) {
  FORGE_ASSIGN_OR_RETURN(Signal signal, Next());
  std::vector<VkSubmitInfo> batches(commands.size(),
                                    Typed<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO));
  for (size_t i = 0; i < commands.size(); ++i) {
    batches[i].commandBufferCount = 1;
    batches[i].pCommandBuffers = &commands[i];
  }
  auto values =
      Typed<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &signal.tick;
  if (!signal.fence) {
    batches.back().pNext = &values;
    batches.back().signalSemaphoreCount = 1;
    batches.back().pSignalSemaphores = semaphore_.address();
  }
  const VkFence fence = signal.fence ? signal.fence->get() : VK_NULL_HANDLE;
  FORGE_RETURN_IF_ERROR(context_->Check(
      context_->fn.vkQueueSubmit(context_->queue(), static_cast<uint32_t>(batches.size()),
                                 batches.data(), fence),
      "vkQueueSubmit"));
  last_tick_ = signal.tick;
  return signal;
}

absl::StatusOr<bool> Signals::Reached(const Signal& signal) const {
  if (signal.fence) {
    const VkResult r = context_->fn.vkGetFenceStatus(context_->device, signal.fence->get());
    if (r == VK_NOT_READY) return false;
    FORGE_RETURN_IF_ERROR(context_->Check(r, "vkGetFenceStatus"));
    return true;
  }
  uint64_t tick = 0;
  FORGE_RETURN_IF_ERROR(
      context_->Check(context_->SemaphoreValue()(context_->device, semaphore_.get(), &tick),
                      "vkGetSemaphoreCounterValue"));
  return tick >= signal.tick;
}

absl::Status Signals::Wait(const Signal& signal, std::chrono::nanoseconds most) const {
  const auto nanoseconds = static_cast<uint64_t>(std::max<int64_t>(most.count(), 0));
  auto info = Typed<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = semaphore_.address();
  info.pValues = &signal.tick;
  const VkResult r = signal.fence
                         ? context_->fn.vkWaitForFences(
                               context_->device, 1, signal.fence->address(), VK_TRUE, nanoseconds)
                         : context_->WaitSemaphores()(context_->device, &info, nanoseconds);
  if (r == VK_TIMEOUT) return absl::DeadlineExceededError("the device is still at work");
  return context_->Check(r, signal.fence ? "vkWaitForFences" : "vkWaitSemaphores");
}

}  // namespace forge::vk
