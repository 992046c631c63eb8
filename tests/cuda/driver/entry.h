// SPDX-License-Identifier: Apache-2.0
// How each function of the driver API begins.
#pragma once
#include "tests/cuda/driver/schedule.h"

#define CU_API extern "C" __attribute__((visibility("default"))) CUresult
// Counts the call, fails it on request, and asks for cuInit.
#define CU_ENTER(name)                                                     \
  if (const CUresult entered = ::forge::emulated::EnterCall(#name, false); \
      entered != CUDA_SUCCESS)                                             \
  return entered
// The same, for what needs a current context that no finding has ended.
#define CU_ENTER_CONTEXT(name)                                                                     \
  if (const CUresult entered = ::forge::emulated::EnterCall(#name, true); entered != CUDA_SUCCESS) \
  return entered

namespace forge::emulated {

inline CUresult EnterCall(const char* name, bool context) {
  Device& device = Device::Get();
  if (const CUresult failed = device.Enter(name); failed != CUDA_SUCCESS) return failed;
  if (!device.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!context) return CUDA_SUCCESS;
  if (CurrentContexts().empty() || CurrentContexts().back() == nullptr)
    return CUDA_ERROR_INVALID_CONTEXT;
  return device.lost();
}

inline bool ValidStream(CUstream stream) {
  return stream == nullptr || Device::Get().streams.Has(stream);
}
inline bool ValidDevice(CUdevice device) {
  return device >= 0 && device < Device::Get().settings().devices;
}

}  // namespace forge::emulated
