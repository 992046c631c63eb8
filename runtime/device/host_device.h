// SPDX-License-Identifier: Apache-2.0
// Devices that compute in host memory and whose programs are function calls: the base of reference
// and cpu.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/device/device.h"

namespace forge {

// The arguments of one call of a host program; absent operands are empty.
struct HostArguments {
  std::span<const std::span<uint8_t>> operands;  // the node's operands, its results, scratch
  std::span<const int64_t> scalars;
};

// A program that runs on the host. Run may be called from several threads at once.
class HostProgram : public Program {
 public:
  virtual absl::Status Run(const HostArguments& a) const = 0;
  int dispatches() const override { return 1; }
  uint64_t scratch_bytes() const override { return 0; }
};

// The timeline of a host device: a counter that increases as work finishes.
class HostTimeline final : public Timeline {
 public:
  // Reserves the value that the next work will reach.
  uint64_t Promise();
  // Marks `value` as reached, with the status of its work. Called in the order of Promise.
  void Finish(uint64_t value, const absl::Status& s);
  bool Reached(uint64_t value) override;
  absl::Status Wait(uint64_t value, int64_t nanoseconds) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t promised_ = 0, done_ = 0;
  std::map<uint64_t, absl::Status> failed_;  // the most recent failures
};

// Run executes a segment in the calling thread; submitted segments are executed in order on a
// thread of the device. After a fork, every call in the child process returns Aborted. Derived
// classes add a target and Compile.
class HostDevice : public Device {
 public:
  explicit HostDevice(DeviceInfo info);
  ~HostDevice() override;
  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<BufferRef> Allocate(Memory kind, uint64_t bytes) override;
  uint64_t largest_buffer() const override { return uint64_t{1} << 40; }
  bool host_memory() const override { return true; }
  absl::StatusOr<BufferRef> Import(const Bytes& bytes) override;
  absl::StatusOr<std::span<uint8_t>> Map(Buffer& b) override;
  absl::StatusOr<Point> Copy(const CopyRange& range, std::span<const Point> wait) override;
  uint64_t MemoryLeft() const override;
  absl::StatusOr<SegmentRef> Record(const SegmentSpec& spec) override;
  bool Lend(Buffer& b, uint8_t* memory) override;
  absl::StatusOr<Point> Submit(const SegmentRef& segment, const SubmitArgs& args) override;
  absl::Status Run(const SegmentRef& segment, const SubmitArgs& args) override;
  absl::StatusOr<std::vector<StepTime>> Timestamps(const Segment& s) override;
  absl::Status Health() override;

 private:
  struct Job {
    std::function<absl::Status()> work;
    std::vector<Point> wait;  // points of other timelines
    const std::atomic<bool>* cancel;
    uint64_t value;
  };
  // State that the worker thread uses.
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Job> jobs;
    std::atomic<bool> stop = false;
    std::thread worker;  // started with the first job
    const std::shared_ptr<HostTimeline> timeline = std::make_shared<HostTimeline>();
  };
  absl::StatusOr<Point> Enqueue(Job job, std::span<const Point> wait);
  static void Loop(Queue& queue);
  static absl::Status WaitForOthers(const Job& job, const std::atomic<bool>* stop);

  DeviceInfo info_;
  const uint32_t forks_;
  std::unique_ptr<Queue> queue_ = std::make_unique<Queue>();
};

}  // namespace forge
