// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA driver API that Forge calls, loaded at run time; building needs no SDK.
// Source: CUDA Driver API reference, version 12.
#pragma once
#include <memory>

#include "base/platform.h"
#include "base/status.h"

namespace forge::cuda {

using CuResult = int;
using CuDevice = int;
using CuContext = struct CuContextObject*;
using CuModule = struct CuModuleObject*;
using CuFunction = struct CuFunctionObject*;
using CuStream = struct CuStreamObject*;
using CuEvent = struct CuEventObject*;
using CuGraph = struct CuGraphObject*;
using CuGraphExec = struct CuGraphExecObject*;
using CuAddress = unsigned long long;  // CUdeviceptr

// Values of CUresult.
inline constexpr CuResult kCuSuccess = 0, kCuOutOfMemory = 2, kCuNotInitialized = 3,
                          kCuNoDevice = 100, kCuInvalidImage = 200, kCuNoBinaryForGpu = 209,
                          kCuInvalidPtx = 218, kCuUnsupportedPtxVersion = 222,
                          kCuInvalidSource = 300, kCuNotReady = 600, kCuNotSupported = 801;
// Values of CUdevice_attribute.
inline constexpr int kMaxThreadsPerBlock = 1, kMaxBlockX = 2, kMaxBlockY = 3, kMaxBlockZ = 4,
                     kMaxGridX = 5, kMaxGridY = 6, kMaxGridZ = 7, kMaxSharedPerBlock = 8,
                     kWarpSize = 10, kClockKilohertz = 13, kMultiprocessorCount = 16,
                     kMemoryClockKilohertz = 36, kMemoryBusBits = 37, kL2Bytes = 38,
                     kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76,
                     kMaxSharedPerBlockOptin = 97;
// Value of CUfunction_attribute: the dynamic shared memory that launches may ask for.
inline constexpr int kMaxDynamicShared = 8;
// Of cuStreamBeginCapture: other threads may do what they like meanwhile.
inline constexpr int kCuCaptureThreadLocal = 1;
// Flags of cuStreamCreate and cuEventCreate.
inline constexpr unsigned kCuStreamNonBlocking = 1, kCuEventBlockingSync = 1,
                          kCuEventDisableTiming = 2;

// Member, symbol, parameters; all return CuResult.
// clang-format off
#define FORGE_CUDA_DRIVER_API(X)                                                                  \
  X(init, "cuInit", (unsigned flags))                                                             \
  X(driver_version, "cuDriverGetVersion", (int* version))  /* 1000 * major + 10 * minor */        \
  X(device_count, "cuDeviceGetCount", (int* count))                                               \
  X(device, "cuDeviceGet", (CuDevice* device, int ordinal))                                       \
  X(device_name, "cuDeviceGetName", (char* name, int bytes, CuDevice device))                     \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t* bytes, CuDevice device))                       \
  X(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, CuDevice device))       \
  X(error_name, "cuGetErrorName", (CuResult result, const char** name))                           \
  X(retain_context, "cuDevicePrimaryCtxRetain", (CuContext* context, CuDevice device))            \
  X(release_context, "cuDevicePrimaryCtxRelease_v2", (CuDevice device))                           \
  X(push_context, "cuCtxPushCurrent_v2", (CuContext context))                                     \
  X(pop_context, "cuCtxPopCurrent_v2", (CuContext* context))                                      \
  X(load_module, "cuModuleLoadDataEx",                                                            \
    (CuModule* module, const void* image, unsigned count, int* options, void** values))           \
  X(unload_module, "cuModuleUnload", (CuModule module))                                           \
  X(get_function, "cuModuleGetFunction", (CuFunction* function, CuModule module, const char* name)) \
  X(set_function_attribute, "cuFuncSetAttribute",                                                 \
    (CuFunction function, int attribute, int value))                                              \
  X(launch, "cuLaunchKernel",                                                                     \
    (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,    \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream stream, void** arguments, \
     void** extra))                                                                               \
  X(allocate, "cuMemAlloc_v2", (CuAddress* address, size_t bytes))                                \
  X(free, "cuMemFree_v2", (CuAddress address))                                                    \
  X(allocate_host, "cuMemHostAlloc", (void** memory, size_t bytes, unsigned flags))               \
  X(free_host, "cuMemFreeHost", (void* memory))                                                   \
  X(memory_info, "cuMemGetInfo_v2", (size_t* available, size_t* total))                           \
  X(copy, "cuMemcpyAsync", (CuAddress to, CuAddress from, size_t bytes, CuStream stream))         \
  X(create_stream, "cuStreamCreate", (CuStream* stream, unsigned flags))                          \
  X(destroy_stream, "cuStreamDestroy_v2", (CuStream stream))                                      \
  X(synchronize_stream, "cuStreamSynchronize", (CuStream stream))                                 \
  X(create_event, "cuEventCreate", (CuEvent* event, unsigned flags))                              \
  X(destroy_event, "cuEventDestroy_v2", (CuEvent event))                                          \
  X(record_event, "cuEventRecord", (CuEvent event, CuStream stream))                              \
  X(query_event, "cuEventQuery", (CuEvent event))                                                 \
  X(synchronize_event, "cuEventSynchronize", (CuEvent event))                                     \
  X(elapsed_milliseconds, "cuEventElapsedTime", (float* time, CuEvent begin, CuEvent end))        \
  X(begin_capture, "cuStreamBeginCapture_v2", (CuStream stream, int mode))                        \
  X(end_capture, "cuStreamEndCapture", (CuStream stream, CuGraph* graph))                         \
  X(instantiate_graph, "cuGraphInstantiateWithFlags",                                             \
    (CuGraphExec* exec, CuGraph graph, unsigned long long flags))                                 \
  X(destroy_graph, "cuGraphDestroy", (CuGraph graph))                                             \
  X(destroy_graph_exec, "cuGraphExecDestroy", (CuGraphExec exec))                                 \
  X(launch_graph, "cuGraphLaunch", (CuGraphExec exec, CuStream stream))
// clang-format on

struct DriverApi {
#define X(member, symbol, parameters) CuResult(*member) parameters = nullptr;
  FORGE_CUDA_DRIVER_API(X)
#undef X
  std::shared_ptr<SharedLibrary> library;

  // Opens `path` and initialises CUDA.
  //   errors: Unavailable (no driver, too old a driver, or no usable device)
  static absl::StatusOr<DriverApi> Load(const std::string& path = "libcuda.so.1");
  // Returns OK, or the names of the call and the error.
  //   errors: ResourceExhausted (no memory), Unavailable
  absl::Status Check(CuResult r, std::string_view call) const;
};

}  // namespace forge::cuda
