// SPDX-License-Identifier: Apache-2.0
// A device whose memory is the host's and whose programs are calls: the base of reference and cpu.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/device.h"

namespace forge {

// What one call of a host program sees; absent operands are empty.
struct HostArguments {
  std::span<const std::span<uint8_t>> operands;  // the node's operands, its results, scratch
  std::span<const int64_t> scalars;
};

class HostProgram : public Program {
 public:
  virtual absl::Status Run(const HostArguments& a) const = 0;
  int dispatches() const override { return 1; }
  uint64_t scratch_bytes() const override { return 0; }
};

// Runs segments in order on a thread of its own. Derived classes add a target and Compile.
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
  absl::StatusOr<Point> Submit(Segment& segment, const SubmitArgs& args) override;
  bool Reached(const Point& p) const override;
  absl::Status Wait(const Point& p, int64_t nanoseconds) override;
  absl::StatusOr<std::vector<StepTime>> Timestamps(const Segment& s) override;
  absl::Status Health() override { return absl::OkStatus(); }

 private:
  struct Job {
    std::function<absl::Status()> work;
    uint64_t point;
  };
  absl::StatusOr<Point> Enqueue(std::function<absl::Status()> work);
  void Loop();

  DeviceInfo info_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Job> jobs_;
  uint64_t submitted_ = 0, done_ = 0;
  std::map<uint64_t, absl::Status> failed_;  // by point, until somebody waits for it
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace forge
