// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA driver API that Forge calls, loaded at run time; building needs no SDK.
// Source: CUDA Driver API reference, version 12.
#pragma once
#include <memory>

#include "base/platform.h"
#include "base/status.h"

namespace forge::cuda {

using CuResult = int;  // 0: success
using CuDevice = int;
// Values of CUdevice_attribute.
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kMaxSharedPerBlockOptin = 97;

struct DriverApi {
  CuResult (*init)(unsigned flags) = nullptr;
  CuResult (*driver_version)(int* version) = nullptr;  // 1000 * major + 10 * minor
  CuResult (*device_count)(int* count) = nullptr;
  CuResult (*device)(CuDevice* device, int ordinal) = nullptr;
  CuResult (*device_name)(char* name, int bytes, CuDevice device) = nullptr;
  CuResult (*device_memory)(size_t* bytes, CuDevice device) = nullptr;
  CuResult (*device_attribute)(int* value, int attribute, CuDevice device) = nullptr;
  CuResult (*error_name)(CuResult result, const char** name) = nullptr;
  std::shared_ptr<SharedLibrary> library;

  // Opens `path` and initialises CUDA.
  //   errors: Unavailable (no driver, too old a driver, or no usable device)
  static absl::StatusOr<DriverApi> Load(const std::string& path = "libcuda.so.1");
  // Returns OK, or Unavailable with the names of the call and the error.
  absl::Status Check(CuResult r, std::string_view call) const;
};

}  // namespace forge::cuda
