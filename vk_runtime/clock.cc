// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/clock.h"

#include <deque>

namespace forge::vk {
namespace {

absl::Status Timeout() { return absl::DeadlineExceededError("the device is still at work"); }

class TimelineClock final : public Clock {
 public:
  explicit TimelineClock(ContextRef context) : context_(std::move(context)) {}

  absl::Status Init() {
    auto type = Typed<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    auto info = Typed<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
    info.pNext = &type;
    VkSemaphore handle = VK_NULL_HANDLE;
    FORGE_RETURN_IF_ERROR(
        context_->Check(context_->fn.vkCreateSemaphore(context_->device, &info, nullptr, &handle),
                        "vkCreateSemaphore"));
    semaphore_ = OwnedSemaphore(*context_, handle);
    return absl::OkStatus();
  }

  absl::Status Submit(VkCommandBuffer commands, uint64_t serial) override {
    auto values =
        Typed<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    values.signalSemaphoreValueCount = 1;
    values.pSignalSemaphoreValues = &serial;
    auto info = Typed<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    info.pNext = &values;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = semaphore_.address();
    return context_->Check(context_->fn.vkQueueSubmit(context_->queue(), 1, &info, VK_NULL_HANDLE),
                           "vkQueueSubmit");
  }

  absl::StatusOr<uint64_t> Completed() override {
    uint64_t value = 0;
    FORGE_RETURN_IF_ERROR(
        context_->Check(context_->counter_value(context_->device, semaphore_.get(), &value),
                        "vkGetSemaphoreCounterValue"));
    return value;
  }

  absl::Status Wait(uint64_t serial, uint64_t nanoseconds) override {
    auto info = Typed<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
    info.semaphoreCount = 1;
    info.pSemaphores = semaphore_.address();
    info.pValues = &serial;
    const VkResult r = context_->wait_semaphores(context_->device, &info, nanoseconds);
    return r == VK_TIMEOUT ? Timeout() : context_->Check(r, "vkWaitSemaphores");
  }

 private:
  ContextRef context_;
  OwnedSemaphore semaphore_;
};

class FenceClock final : public Clock {
 public:
  explicit FenceClock(ContextRef context) : context_(std::move(context)) {}

  absl::Status Submit(VkCommandBuffer commands, uint64_t serial) override {
    auto create = Typed<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    VkFence handle = VK_NULL_HANDLE;
    FORGE_RETURN_IF_ERROR(context_->Check(
        context_->fn.vkCreateFence(context_->device, &create, nullptr, &handle), "vkCreateFence"));
    auto fence = std::make_shared<OwnedFence>(*context_, handle);
    auto info = Typed<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    FORGE_RETURN_IF_ERROR(context_->Check(
        context_->fn.vkQueueSubmit(context_->queue(), 1, &info, handle), "vkQueueSubmit"));
    std::lock_guard lock(mutex_);
    pending_.push_back({serial, std::move(fence)});
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Completed() override {
    std::lock_guard lock(mutex_);
    while (!pending_.empty()) {
      const VkResult r =
          context_->fn.vkGetFenceStatus(context_->device, pending_.front().fence->get());
      if (r == VK_NOT_READY) break;
      FORGE_RETURN_IF_ERROR(context_->Check(r, "vkGetFenceStatus"));
      completed_ = pending_.front().serial;
      pending_.pop_front();
    }
    return completed_;
  }

  absl::Status Wait(uint64_t serial, uint64_t nanoseconds) override {
    std::shared_ptr<OwnedFence> fence;
    {
      std::lock_guard lock(mutex_);
      for (const Pending& p : pending_)
        if (p.serial == serial) fence = p.fence;
    }
    if (!fence) return absl::OkStatus();  // seen to be done
    const VkResult r =
        context_->fn.vkWaitForFences(context_->device, 1, fence->address(), VK_TRUE, nanoseconds);
    return r == VK_TIMEOUT ? Timeout() : context_->Check(r, "vkWaitForFences");
  }

 private:
  struct Pending {
    uint64_t serial;
    std::shared_ptr<OwnedFence> fence;
  };
  ContextRef context_;
  std::mutex mutex_;
  std::deque<Pending> pending_;  // under mutex_, as is completed_
  uint64_t completed_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Clock>> MakeClock(const ContextRef& context) {
  if (!context->abilities().timeline) return std::make_unique<FenceClock>(context);
  auto clock = std::make_unique<TimelineClock>(context);
  FORGE_RETURN_IF_ERROR(clock->Init());
  return clock;
}

}  // namespace forge::vk
