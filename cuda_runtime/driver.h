// SPDX-License-Identifier: Apache-2.0
// Lists the CUDA devices of this machine. Kernels for them do not exist yet, so none can be opened.
#pragma once
#include <mutex>
#include <optional>

#include "cuda_runtime/driver_api.h"
#include "runtime/device/device.h"

namespace forge::cuda {

class CudaDriver final : public Driver {
 public:
  explicit CudaDriver(std::string library = "libcuda.so.1") : library_(std::move(library)) {}
  // One entry for each device; where there is none, one entry "cuda" that says why.
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
