// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/api/driver_api.h"

#include "cuda_runtime/api/libraries.h"

namespace forge::cuda {

absl::StatusOr<DriverApi> DriverApi::Load(const std::string& path) {
  DriverApi api;
  absl::StatusOr<std::shared_ptr<SharedLibrary>> library = SharedLibrary::Open(path);
  if (!library.ok())
    return Unavailable("no NVIDIA driver is installed ({} could not be opened)", path);
  api.library = *std::move(library);
#define X(member, symbol, parameters) \
  FORGE_RETURN_IF_ERROR(ResolveSymbol(*api.library, "the NVIDIA driver", symbol, api.member));
  FORGE_CUDA_DRIVER_API(X)
#undef X
  FORGE_RETURN_IF_ERROR(api.Check(api.init(0), "cuInit"));
  return api;
}

absl::Status DriverApi::Check(CuResult r, std::string_view call) const {
  if (r == kCuSuccess) return absl::OkStatus();
  const char* name = nullptr;
  if (error_name(r, &name) != 0 || name == nullptr) name = "an unknown error";
  if (r == kCuOutOfMemory)
    return ResourceExhausted("the GPU has no memory left: {} returned {}", call, name);
  return Unavailable("the NVIDIA driver failed: {} returned {} ({})", call, name, r);
}

}  // namespace forge::cuda
