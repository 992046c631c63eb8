// SPDX-License-Identifier: Apache-2.0
// A device that tells a test what it is asked for.
#pragma once
#include <functional>

#include "runtime/device/forwarding_device.h"

namespace forge::testing {

class HookedDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  // Each may be empty; those that return a status may refuse.
  std::function<absl::Status(uint64_t bytes)> on_allocate;
  std::function<void(std::span<const CompileRequest>)> on_compile;
  std::function<void()> on_submit;
  bool imports = true;

  absl::StatusOr<BufferRef> Allocate(Memory kind, uint64_t bytes) override {
    if (on_allocate) FORGE_RETURN_IF_ERROR(on_allocate(bytes));
    return ForwardingDevice::Allocate(kind, bytes);
  }
  absl::StatusOr<BufferRef> Import(const Bytes& bytes) override {
    if (!imports) return Unimplemented("imports are off");
    return ForwardingDevice::Import(bytes);
  }
  std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                  CompileProgress progress) override {
    if (on_compile) on_compile(requests);
    return ForwardingDevice::Compile(requests, progress);
  }
  absl::StatusOr<Point> Submit(const SegmentRef& segment, const SubmitArgs& args) override {
    if (on_submit) on_submit();
    return ForwardingDevice::Submit(segment, args);
  }
  absl::Status Run(const SegmentRef& segment, const SubmitArgs& args) override {
    if (on_submit) on_submit();
    return ForwardingDevice::Run(segment, args);
  }
};

}  // namespace forge::testing
