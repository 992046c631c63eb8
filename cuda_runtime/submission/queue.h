// SPDX-License-Identifier: Apache-2.0
// The queue of a device: hands work to one stream in order and tracks its completion by events.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include "cuda_runtime/api/nvtx.h"
#include "cuda_runtime/submission/launch_list.h"

namespace forge::cuda {

// Events at the begin and the end of each step of a submission.
using StepEvents = std::vector<std::array<OwnedEvent, 2>>;

struct Job {
  LaunchListRef list;
  std::shared_ptr<const OwnedGraphExec> graph;    // the list as one launch; null: step by step
  std::vector<std::shared_ptr<const void>> keep;  // alive until the job is done
  std::vector<Point> others;                      // points of other timelines, awaited first
  std::shared_ptr<StepEvents> times;              // null: not wanted
  const std::atomic<bool>* cancel = nullptr;      // must live until the job is done
};

// The timeline of a device. Points keep it alive, so it may outlive its device; it is closed by
// then.
class Queue final : public Timeline, public std::enable_shared_from_this<Queue> {
 public:
  //   nvtx: steps are ranges of it, named by their labels; null: they are not
  //   errors: Unavailable, ResourceExhausted
  static absl::StatusOr<std::shared_ptr<Queue>> Create(const ContextRef& context, NvtxRef nvtx);
  ~Queue() override { Close(); }
  Queue(const Queue&) = delete;
  // Waits for submitted work and cancels the rest; every point is reached afterwards. Idempotent.
  void Close();

  // Enqueues a job and never waits for the device. Jobs run in order. A job that waits for another
  // timeline or may be cancelled, and all jobs behind it, are handed over by the thread of the
  // queue.
  //   errors: InvalidArgument (a point that no submitted work will reach), Aborted (device lost),
  //   those of the driver
  absl::StatusOr<Point> Submit(Job job, std::span<const Point> wait);
  bool Reached(uint64_t value) override;
  absl::Status Wait(uint64_t value, int64_t nanoseconds) override;

  absl::StatusOr<OwnedEvent> MakeEvent(unsigned flags);
  // Makes one launch of all steps of a list.
  //   errors: those of the driver
  absl::StatusOr<OwnedGraphExec> Capture(const LaunchList& list);

 private:
  struct State {
    Job job;
    uint64_t value = 0;
    std::shared_ptr<OwnedEvent> done;  // recorded behind its work; null until then
    bool submitted = false;            // nothing is left to hand over
    absl::Status status;
  };
  using StateRef = std::shared_ptr<State>;
  using Trash = std::vector<StateRef>;  // destroyed after the lock is released

  Queue(ContextRef context, NvtxRef nvtx) : context_(std::move(context)), nvtx_(std::move(nvtx)) {}
  absl::Status StartThread();  // under mutex_
  void HandOver(State& s);     // all its steps and its event
  void HandSteps(State& s);
  absl::Status Hand(State& s, size_t step);
  void Feed();
  void FeedOne(State& s);
  bool IsCancelled(const State& s) const;
  absl::Status WaitForOthers(const State& s) const;
  void Poll(Trash& trash);                      // under mutex_
  void Finish(Trash& trash);                    // the oldest job; under mutex_
  absl::Status ResultOf(uint64_t value) const;  // under mutex_
  absl::Status WaitForEvent(const OwnedEvent& event, std::chrono::steady_clock::time_point until);

  ContextRef context_;
  const NvtxRef nvtx_;
  OwnedStream stream_;
  OwnedStream capture_;  // made at the first capture; work is recorded there and never runs
  std::mutex capture_mutex_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StateRef> jobs_;     // not yet done, in order
  std::deque<StateRef> feeding_;  // jobs that the thread hands over
  std::map<uint64_t, absl::Status> errors_;
  uint64_t last_value_ = 0;
  std::atomic<uint64_t> finished_{0};
  std::atomic<bool> stop_ = false;
  std::thread feeder_;
};

}  // namespace forge::cuda
