// SPDX-License-Identifier: Apache-2.0
// When submitted work is done: a timeline semaphore tells, or a fence for each submission where the
// device has none.
#pragma once
#include <chrono>

#include "vk_runtime/api/context.h"

namespace forge::vk {

// What a submission sets once its work, and all submitted before it, is done.
struct Signal {
  uint64_t tick = 0;                  // of the timeline semaphore
  std::shared_ptr<OwnedFence> fence;  // null: the semaphore tells
};

// Of one queue, which it hands command buffers to.
class Signals {
 public:
  explicit Signals(ContextRef context) : context_(std::move(context)) {}

  // One submission to the driver. Each command buffer is a batch of its own, which watchdogs watch
  // by itself. One thread at a time.
  absl::StatusOr<Signal> Submit(std::span<const VkCommandBuffer> commands);
  // Any thread.  errors: Aborted (lost)
  absl::StatusOr<bool> Reached(const Signal& signal) const;
  //   errors: DeadlineExceeded, Aborted (lost)
  absl::Status Wait(const Signal& signal, std::chrono::nanoseconds most) const;

 private:
  absl::StatusOr<Signal> Next();

  ContextRef context_;
  OwnedSemaphore semaphore_;  // made at the first submission
  uint64_t last_tick_ = 0;
};

}  // namespace forge::vk
