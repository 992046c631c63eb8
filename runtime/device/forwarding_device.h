// SPDX-License-Identifier: Apache-2.0
// A device that forwards every call to another device: the base of devices that change some calls.
#pragma once
#include "runtime/device/device.h"

namespace forge {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(DeviceRef device) : device_(std::move(device)) {}
  const DeviceInfo& info() const override { return device_->info(); }
  const ir::Target& target() const override { return device_->target(); }
  absl::StatusOr<BufferRef> Allocate(Memory kind, uint64_t bytes) override {
    return device_->Allocate(kind, bytes);
  }
  uint64_t largest_buffer() const override { return device_->largest_buffer(); }
  bool host_memory() const override { return device_->host_memory(); }
  bool shares_memory() const override { return device_->shares_memory(); }
  absl::StatusOr<BufferRef> Import(const Bytes& bytes) override { return device_->Import(bytes); }
  absl::StatusOr<std::span<uint8_t>> Map(Buffer& b) override { return device_->Map(b); }
  bool Lend(Buffer& b, uint8_t* memory) override { return device_->Lend(b, memory); }
  absl::StatusOr<Point> Copy(const CopyRange& range, std::span<const Point> wait) override {
    return device_->Copy(range, wait);
  }
  uint64_t MemoryLeft() const override { return device_->MemoryLeft(); }
  std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                  CompileProgress progress) override {
    return device_->Compile(requests, progress);
  }
  CompileCounts compile_counts() const override { return device_->compile_counts(); }
  std::vector<std::string> Choices(const CompileRequest& request, size_t most) override {
    return device_->Choices(request, most);
  }
  absl::Status Prefer(const CompileRequest& request) override { return device_->Prefer(request); }
  bool keeps_step_values() const override { return device_->keeps_step_values(); }
  absl::StatusOr<SegmentRef> Record(const SegmentSpec& spec) override {
    return device_->Record(spec);
  }
  absl::StatusOr<Point> Submit(const SegmentRef& segment, const SubmitArgs& args) override {
    return device_->Submit(segment, args);
  }
  absl::Status Run(const SegmentRef& segment, const SubmitArgs& args) override {
    return device_->Run(segment, args);
  }
  bool Reached(const Point& p) const override { return device_->Reached(p); }
  absl::Status Wait(const Point& p, int64_t nanoseconds) override {
    return device_->Wait(p, nanoseconds);
  }
  absl::StatusOr<std::vector<StepTime>> Timestamps(const Segment& s) override {
    return device_->Timestamps(s);
  }
  absl::Status Health() override { return device_->Health(); }

 protected:
  Device& device() const { return *device_; }

 private:
  DeviceRef device_;
};

}  // namespace forge
