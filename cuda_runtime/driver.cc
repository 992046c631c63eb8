// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/driver.h"

namespace forge::cuda {
namespace {

constexpr char kNoKernels[] =
    "Forge has no kernels for CUDA yet; its Vulkan device runs on this GPU";

absl::StatusOr<DeviceInfo> Describe(const DriverApi& api, int ordinal) {
  CuDevice device = 0;
  FORGE_RETURN_IF_ERROR(api.Check(api.device(&device, ordinal), "cuDeviceGet"));
  char name[256] = {};
  FORGE_RETURN_IF_ERROR(
      api.Check(api.device_name(name, sizeof(name) - 1, device), "cuDeviceGetName"));
  size_t bytes = 0;
  FORGE_RETURN_IF_ERROR(api.Check(api.device_memory(&bytes, device), "cuDeviceTotalMem"));
  const auto attribute = [&](int which) {
    int value = 0;
    return api.device_attribute(&value, which, device) == 0 ? value : 0;
  };
  int version = 0;
  FORGE_RETURN_IF_ERROR(api.Check(api.driver_version(&version), "cuDriverGetVersion"));
  DeviceInfo info;
  info.id = fmt::format("cuda:{}", ordinal);
  info.name = name;
  info.backend = "cuda";
  info.driver = fmt::format("NVIDIA, CUDA {}.{}", version / 1000, version % 1000 / 10);
  info.api = fmt::format("compute capability {}.{}", attribute(kComputeCapabilityMajor),
                         attribute(kComputeCapabilityMinor));
  info.memory_bytes = bytes;
  info.limits = {{"multiprocessors", std::to_string(attribute(kMultiprocessorCount))},
                 {"max_shared_bytes", std::to_string(attribute(kMaxSharedPerBlockOptin))}};
  info.usable = Verdict::No(kNoKernels);
  return info;
}

}  // namespace

absl::StatusOr<std::vector<DeviceInfo>> CudaDriver::Ask() {
  std::lock_guard lock(mutex_);
  if (!api_) api_ = DriverApi::Load(library_);
  if (!api_->ok()) return api_->status();
  const DriverApi& api = **api_;
  int count = 0;
  FORGE_RETURN_IF_ERROR(api.Check(api.device_count(&count), "cuDeviceGetCount"));
  if (count <= 0) return Unavailable("the NVIDIA driver found no CUDA device");
  std::vector<DeviceInfo> all;
  for (int i = 0; i < count; ++i) {
    FORGE_ASSIGN_OR_RETURN(DeviceInfo info, Describe(api, i));
    all.push_back(std::move(info));
  }
  return all;
}

std::vector<DeviceInfo> CudaDriver::List() {
  absl::StatusOr<std::vector<DeviceInfo>> all = Ask();
  if (all.ok()) return *std::move(all);
  DeviceInfo none;
  none.id = none.backend = "cuda";
  none.name = "no CUDA device";
  none.usable = Verdict::No(std::string(Message(all.status())));
  return {none};
}

absl::StatusOr<DeviceRef> CudaDriver::Open(size_t index, const DeviceOptions&) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> all, Ask());
  if (index >= all.size())
    return Unavailable("there is no CUDA device {}; {} found", index, all.size());
  return Unimplemented("{}: {}", all[index].name, kNoKernels);
}

}  // namespace forge::cuda
