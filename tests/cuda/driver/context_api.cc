// SPDX-License-Identifier: Apache-2.0
// cuInit, cuDevice*, cuCtx*, errors.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/cuda/driver/entry.h"

namespace {

using forge::emulated::Context;
using forge::emulated::ContextStack;
using forge::emulated::CurrentContexts;
using forge::emulated::Device;
using forge::emulated::Schedule;
using forge::emulated::ValidDevice;

struct ErrorName {
  CUresult code;
  const char *name, *text;
};
constexpr ErrorName kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorName* FindError(CUresult code) {
  const auto* const found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                         [&](const ErrorName& e) { return e.code == code; });
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace

CU_API cuInit(unsigned flags) {
  Device& device = Device::Get();
  if (const CUresult failed = device.Enter("cuInit"); failed != CUDA_SUCCESS) return failed;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (device.settings().devices == 0) return CUDA_ERROR_NO_DEVICE;
  device.initialised = true;
  return CUDA_SUCCESS;
}

CU_API cuDriverGetVersion(int* version) {
  if (const CUresult failed = Device::Get().Enter("cuDriverGetVersion"); failed != CUDA_SUCCESS)
    return failed;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 13050;
  return CUDA_SUCCESS;
}

CU_API cuGetErrorName(CUresult code, const char** name) {
  const ErrorName* const e = FindError(code);
  *name = e == nullptr ? nullptr : e->name;
  return e == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CU_API cuGetErrorString(CUresult code, const char** text) {
  const ErrorName* const e = FindError(code);
  *text = e == nullptr ? nullptr : e->text;
  return e == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CU_API cuDeviceGetCount(int* count) {
  CU_ENTER(cuDeviceGetCount);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = Device::Get().settings().devices;
  return CUDA_SUCCESS;
}

CU_API cuDeviceGet(CUdevice* device, int ordinal) {
  CU_ENTER(cuDeviceGet);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CU_API cuDeviceGetName(char* name, int bytes, CUdevice device) {
  CU_ENTER(cuDeviceGetName);
  if (name == nullptr || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  const auto& s = Device::Get().settings();
  std::snprintf(name, static_cast<size_t>(bytes), "emulated CUDA device (compute capability %d.%d)",
                s.major, s.minor);
  return CUDA_SUCCESS;
}

CU_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  CU_ENTER(cuDeviceGetUuid_v2);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(uuid->bytes, "forge-emulated-0", 16);
  uuid->bytes[15] = static_cast<char>('0' + device);
  return CUDA_SUCCESS;
}
CU_API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CU_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  CU_ENTER(cuDeviceTotalMem_v2);
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = Device::Get().settings().memory;
  return CUDA_SUCCESS;
}

CU_API cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  CU_ENTER(cuDeviceGetAttribute);
  if (value == nullptr || attribute <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = Device::Get().Attribute(attribute);
  return CUDA_SUCCESS;
}

CU_API cuDeviceGetPCIBusId(char* text, int bytes, CUdevice device) {
  CU_ENTER(cuDeviceGetPCIBusId);
  if (text == nullptr || bytes < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<size_t>(bytes), "0000:%02x:00.0", device);
  return CUDA_SUCCESS;
}

CU_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  CU_ENTER(cuDevicePrimaryCtxRetain);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context& c = Device::Get().context[device];
  c.device = device;
  ++c.retained;
  *context = &c;
  return CUDA_SUCCESS;
}

CU_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CU_ENTER(cuDevicePrimaryCtxRelease_v2);
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context& c = Device::Get().context[device];
  if (c.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--c.retained == 0) Device::Get().ResetLost();
  return CUDA_SUCCESS;
}

CU_API cuDevicePrimaryCtxReset_v2(CUdevice device) {
  CU_ENTER(cuDevicePrimaryCtxReset_v2);
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Device::Get().ResetLost();
  return CUDA_SUCCESS;
}

CU_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  CU_ENTER(cuDevicePrimaryCtxGetState);
  if (!ValidDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = Device::Get().context[device].retained > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned) {
  CU_ENTER(cuDevicePrimaryCtxSetFlags_v2);
  return ValidDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CU_API cuCtxSetCurrent(CUcontext context) {
  CU_ENTER(cuCtxSetCurrent);
  ContextStack& all = CurrentContexts();
  if (all.empty())
    all.push_back(context);
  else
    all.set_back(context);
  return CUDA_SUCCESS;
}

CU_API cuCtxGetCurrent(CUcontext* context) {
  CU_ENTER(cuCtxGetCurrent);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = CurrentContexts().empty() ? nullptr : CurrentContexts().back();
  return CUDA_SUCCESS;
}

CU_API cuCtxPushCurrent_v2(CUcontext context) {
  CU_ENTER(cuCtxPushCurrent_v2);
  if (CurrentContexts().full()) return CUDA_ERROR_OUT_OF_MEMORY;
  CurrentContexts().push_back(context);
  return CUDA_SUCCESS;
}

CU_API cuCtxPopCurrent_v2(CUcontext* context) {
  CU_ENTER(cuCtxPopCurrent_v2);
  ContextStack& all = CurrentContexts();
  if (all.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = all.back();
  all.pop_back();
  return CUDA_SUCCESS;
}

CU_API cuCtxGetDevice(CUdevice* device) {
  CU_ENTER_CONTEXT(cuCtxGetDevice);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = CurrentContexts().back()->device;
  return CUDA_SUCCESS;
}

CU_API cuCtxGetApiVersion(CUcontext, unsigned* version) {
  CU_ENTER(cuCtxGetApiVersion);
  *version = 3020;
  return CUDA_SUCCESS;
}

CU_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  CU_ENTER_CONTEXT(cuCtxGetStreamPriorityRange);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CU_API cuCtxSynchronize() {
  CU_ENTER_CONTEXT(cuCtxSynchronize);
  return Schedule::Get().Drain();
}
