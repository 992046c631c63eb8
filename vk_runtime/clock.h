// SPDX-License-Identifier: Apache-2.0
// How far a queue has got: submissions are numbered, by a timeline semaphore or by fences.
#pragma once
#include "vk_runtime/context.h"

namespace forge::vk {

class Clock {
 public:
  virtual ~Clock() = default;
  // Submits `commands` as number `serial`; serials ascend. Called under one lock.
  virtual absl::Status Submit(VkCommandBuffer commands, uint64_t serial) = 0;
  // The highest serial that is done. Any thread.
  virtual absl::StatusOr<uint64_t> Completed() = 0;
  // Waits for a serial that was submitted.  errors: DeadlineExceeded, Aborted
  virtual absl::Status Wait(uint64_t serial, uint64_t nanoseconds) = 0;
};

// errors: ResourceExhausted
absl::StatusOr<std::unique_ptr<Clock>> MakeClock(const ContextRef& context);

}  // namespace forge::vk
