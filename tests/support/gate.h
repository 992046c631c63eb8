// SPDX-License-Identifier: Apache-2.0
// A timeline that a test moves by hand.
#pragma once
#include <condition_variable>
#include <mutex>

#include "runtime/device/device.h"

namespace forge::testing {

class Gate final : public Timeline {
 public:
  // Everything up to `value` is done, and waiting for it gives `status`.
  void Open(uint64_t value, absl::Status status = absl::OkStatus()) {
    std::lock_guard lock(mutex_);
    done_ = value;
    status_ = std::move(status);
    changed_.notify_all();
  }
  bool Reached(uint64_t value) override {
    std::lock_guard lock(mutex_);
    return done_ >= value;
  }
  absl::Status Wait(uint64_t value, int64_t nanoseconds) override {
    std::unique_lock lock(mutex_);
    auto reached = [&] { return done_ >= value; };
    if (nanoseconds < 0)
      changed_.wait(lock, reached);
    else if (!changed_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), reached))
      return absl::DeadlineExceededError("the gate is closed");
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t done_ = 0;
  absl::Status status_;
};

}  // namespace forge::testing
