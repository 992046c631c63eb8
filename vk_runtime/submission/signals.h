// SPDX-License-Identifier: Apache-2.0
// Completion of submitted work: a timeline semaphore, or a fence for each submission on devices
// without timeline semaphores.
#pragma once
#include <chrono>

#include "vk_runtime/api/context.h"

namespace forge::vk {

// The signal of a submission: set when its work, and all work submitted before it, has finished.
struct Signal {
  uint64_t tick = 0;                  // value of the timeline semaphore
  std::shared_ptr<OwnedFence> fence;  // null: the timeline semaphore is used
};

// Submits command buffers to one queue.
class Signals {
 public:
  explicit Signals(ContextRef context) : context_(std::move(context)) {}

  // Makes one submission to the driver. Each command buffer is a separate batch, which a watchdog
  // times separately. Called by one thread at a time.
  absl::StatusOr<Signal> Submit(std::span<const VkCommandBuffer> commands);
  // Returns true when the signal is set. May be called from any thread.
  //   errors: Aborted (device lost)
  absl::StatusOr<bool> Reached(const Signal& signal) const;
  // Waits for a signal.
  //   errors: DeadlineExceeded, Aborted (device lost)
  absl::Status Wait(const Signal& signal, std::chrono::nanoseconds most) const;

 private:
  absl::StatusOr<Signal> Next();

  ContextRef context_;
  OwnedSemaphore semaphore_;  // created by the first submission
  uint64_t last_tick_ = 0;
};

}  // namespace forge::vk
