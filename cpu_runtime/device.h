// SPDX-License-Identifier: Apache-2.0
// The CPU device.
#pragma once
#include "cpu_runtime/target.h"
#include "runtime/device/host_device.h"

namespace forge::cpu {

// The CPU as a device.
class CpuDevice final : public HostDevice {
 public:
  CpuDevice(DeviceInfo info, Settings settings);
  const ir::Target& target() const override { return target_; }
  std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                  CompileProgress progress) override;

 private:
  Settings settings_;
  CpuTarget target_;
};

// Lists one device: all processors that the process may use.
class CpuDriver final : public Driver {
 public:
  bool survives_fork() const override { return true; }
  std::vector<DeviceInfo> List() override;
  // Opens the device.
  //   errors: NotFound (any index but 0)
  absl::StatusOr<DeviceRef> Open(size_t index, const DeviceOptions& options) override;
};

}  // namespace forge::cpu
