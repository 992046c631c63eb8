// SPDX-License-Identifier: Apache-2.0
// Submits jobs in order and tells when they are done.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include "vk_runtime/submission/recording.h"
#include "vk_runtime/submission/signals.h"

namespace forge::vk {

// Recorded work in pieces, each short enough for any watchdog. A job that can be cancelled is fed
// to the driver two pieces at a time by a thread of the queue, others in one submission.
struct Job {
  RecordingRef parameters;  // done before `recording`; may be null
  RecordingRef recording;
  std::vector<std::shared_ptr<const void>> keep;  // alive until the job is done
  std::vector<VulkanBufferRef> readbacks;         // made visible to the host when it is done
  std::vector<Point> others;                      // of other timelines; waited for first
  const std::atomic<bool>* cancel = nullptr;      // must live until the job is done
};

// Points keep it, so it may outlive its device; by then it is closed.
class Queue final : public Timeline, public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(const ContextRef& context) : context_(context), signals_(context) {}
  ~Queue() override { Close(); }
  Queue(const Queue&) = delete;
  // Waits for what was submitted, cancels what was not; every point is reached then. Idempotent.
  void Close();

  // Never waits for the device. Jobs run in order; those that wait for another timeline, and all
  // behind them, are fed to the driver by the queue's thread.
  //   errors: InvalidArgument (a point of the future), Aborted (lost)
  absl::StatusOr<Point> Submit(Job job, std::span<const Point> wait);
  bool Reached(uint64_t value) override;
  absl::Status Wait(uint64_t value, int64_t nanoseconds) override;

 private:
  struct State {
    Job job;
    uint64_t value = 0;
    std::vector<VkCommandBuffer> pieces;
    size_t given = 0;             // pieces that the driver has
    std::vector<Signal> signals;  // of its submissions
    bool submitted = false;       // nothing more of it will be
    absl::Status status;
  };
  using StateRef = std::shared_ptr<State>;
  // Whatever it holds is destroyed once the lock is released.
  using Trash = std::vector<StateRef>;

  absl::Status SubmitPieces(State& s, size_t count);  // under mutex_
  void Poll(Trash& trash);                            // under mutex_
  absl::Status ResultOf(uint64_t value) const;        // under mutex_
  void Feed();
  void FeedOne(const StateRef& s, std::unique_lock<std::mutex>& lock);
  bool IsCancelled(const State& s) const;  // under mutex_
  absl::Status WaitForOthers(const State& s, std::unique_lock<std::mutex>& lock) const;
  void Finish(Trash& trash);  // the oldest job; under mutex_

  ContextRef context_;
  Signals signals_;  // submits under mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StateRef> jobs_;     // not yet done, in order
  std::deque<StateRef> feeding_;  // those that the thread submits
  std::map<uint64_t, absl::Status> errors_;
  uint64_t last_value_ = 0;
  std::atomic<uint64_t> finished_{0};
  bool stop_ = false;
  std::thread feeder_;
};

}  // namespace forge::vk
