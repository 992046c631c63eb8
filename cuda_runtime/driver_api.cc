// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/driver_api.h"

namespace forge::cuda {
namespace {

template <class F>
absl::Status Resolve(const SharedLibrary& library, const char* name, F& function) {
  function = reinterpret_cast<F>(library.Symbol(name));
  if (function == nullptr)
    return Unavailable("the NVIDIA driver is too old for Forge: it has no {}", name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DriverApi> DriverApi::Load(const std::string& path) {
  DriverApi api;
  absl::StatusOr<std::shared_ptr<SharedLibrary>> library = SharedLibrary::Open(path);
  if (!library.ok())
    return Unavailable("no NVIDIA driver is installed ({} could not be opened)", path);
  api.library = *std::move(library);
  const SharedLibrary& l = *api.library;
  FORGE_RETURN_IF_ERROR(Resolve(l, "cuInit", api.init));
  FORGE_RETURN_IF_ERROR(Resolve(l, "cuDriverGetVersion", api.driver_version));
  FORGE_RETURN_IF_ERROR(Resolve(l, "cuDeviceGetCount", api.device_count));
  FORGE_RETURN_IF_ERROR(Resolve(l, "cuDeviceGet", api.device));
  FORGE_RETURN_IF_ERROR(Resolve(l, "cuDeviceGetName", api.device_name));
  FORGE_RETURN_IF_ERROR(Resolve(l, "cuDeviceTotalMem_v2", api.device_memory));
  FORGE_RETURN_IF_ERROR(Resolve(l, "cuDeviceGetAttribute", api.device_attribute));
  FORGE_RETURN_IF_ERROR(Resolve(l, "cuGetErrorName", api.error_name));
  FORGE_RETURN_IF_ERROR(api.Check(api.init(0), "cuInit"));
  return api;
}

absl::Status DriverApi::Check(CuResult r, std::string_view call) const {
  if (r == 0) return absl::OkStatus();
  const char* name = nullptr;
  if (error_name(r, &name) != 0 || name == nullptr) name = "an unknown error";
  return Unavailable("the NVIDIA driver failed: {} returned {} ({})", call, name, r);
}

}  // namespace forge::cuda
