// SPDX-License-Identifier: Apache-2.0
// The driver that the plug-in exports: lists and opens CUDA devices.
#pragma once
#include <mutex>
#include <optional>

#include "cuda_runtime/api/nvrtc.h"
#include "cuda_runtime/device/device.h"

namespace forge::cuda {

// FORGE_CUDA_COMPILE_FOR=sm_80 adds a device that only compiles, for that architecture; it needs no
// driver.
class CudaDriver final : public Driver {
 public:
  // Loads nothing; the environment and the libraries are read at the first call.
  explicit CudaDriver(std::string library = "libcuda.so.1") : library_(std::move(library)) {}
  // One entry for each device; without devices, one unusable entry "cuda" with the reason.
  std::vector<DeviceInfo> List() override;
  // errors: Unavailable (no such device, not usable, or no NVRTC)
  absl::StatusOr<DeviceRef> Open(size_t index, const DeviceOptions& options) override;

 private:
  absl::StatusOr<std::vector<DeviceFacts>> Ask();  // under mutex_
  absl::StatusOr<std::vector<DeviceFacts>> AskDriver();
  absl::StatusOr<CublasLtRef> AskCublasLt(const DeviceFacts& facts);  // under mutex_
  absl::StatusOr<ProductLibraryRef> MakeLibrary(const ContextRef& context);
  const std::string library_;
  std::mutex mutex_;
  std::optional<absl::StatusOr<std::shared_ptr<const DriverApi>>> api_;  // under mutex_
  std::optional<absl::StatusOr<std::shared_ptr<const Nvrtc>>> nvrtc_;    // under mutex_
  std::optional<absl::StatusOr<CublasLtRef>> cublaslt_;                  // under mutex_
};

}  // namespace forge::cuda
