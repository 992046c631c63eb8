// SPDX-License-Identifier: Apache-2.0
// Lists the CUDA devices of the machine. There is no code generator for them yet, so none can be
// opened.
#pragma once
#include <mutex>
#include <optional>

#include "cuda_runtime/driver_api.h"
#include "runtime/device/device.h"

namespace forge::cuda {

class CudaDriver final : public Driver {
 public:
  explicit CudaDriver(std::string library = "libcuda.so.1") : library_(std::move(library)) {}
  // One entry for each device; without devices, one unusable entry "cuda" with the reason.
  std::vector<DeviceInfo> List() override;
  // errors: Unavailable (no such device), Unimplemented
  absl::StatusOr<DeviceRef> Open(size_t index, const DeviceOptions& options) override;

 private:
  absl::StatusOr<std::vector<DeviceInfo>> Ask();
  const std::string library_;
  std::mutex mutex_;
  std::optional<absl::StatusOr<DriverApi>> api_;  // under mutex_
};

}  // namespace forge::cuda
