// SPDX-License-Identifier: Apache-2.0
// The queue of a device: submits jobs in order and tracks their completion.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include "vk_runtime/submission/recording.h"
#include "vk_runtime/submission/signals.h"

namespace forge::vk {

// Recorded work in pieces, each short enough for a watchdog. A job with `cancel` is submitted two
// pieces at a time by a thread of the queue; other jobs are one submission.
struct Job {
  RecordingRef parameters;  // executed before `recording`; may be null
  RecordingRef recording;
  std::vector<std::shared_ptr<const void>> keep;  // alive until the job is done
  std::vector<VulkanBufferRef> readbacks;         // made visible to the host when it is done
  std::vector<Point> others;                      // points of other timelines, awaited first
  const std::atomic<bool>* cancel = nullptr;      // must live until the job is done
};

// The timeline of a device. Points keep it alive, so it may outlive its device; it is closed by
// then.
class Queue final : public Timeline, public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(const ContextRef& context) : context_(context), signals_(context) {}
  ~Queue() override { Close(); }
  Queue(const Queue&) = delete;
  // Waits for submitted work and cancels the rest; every point is reached afterwards. Idempotent.
  void Close();

  // Enqueues a job and never waits for the device. Jobs run in order; a job that waits for another
  // timeline, and all jobs behind it, are submitted by the thread of the queue.
  //   errors: InvalidArgument (a point that no submitted work will reach), Aborted (device lost)
  absl::StatusOr<Point> Submit(Job job, std::span<const Point> wait);
  bool Reached(uint64_t value) override;
  absl::Status Wait(uint64_t value, int64_t nanoseconds) override;

 private:
  struct State {
    Job job;
    uint64_t value = 0;
    std::vector<VkCommandBuffer> pieces;
    size_t given = 0;             // number of pieces submitted
    std::vector<Signal> signals;  // of its submissions
    bool submitted = false;       // no piece is left to submit
    absl::Status status;
  };
  using StateRef = std::shared_ptr<State>;
  // Objects to destroy after the lock is released.
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
  std::deque<StateRef> feeding_;  // jobs that the thread submits
  std::map<uint64_t, absl::Status> errors_;
  uint64_t last_value_ = 0;
  std::atomic<uint64_t> finished_{0};
  bool stop_ = false;
  std::thread feeder_;
};

}  // namespace forge::vk
