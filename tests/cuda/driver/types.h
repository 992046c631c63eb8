// SPDX-License-Identifier: Apache-2.0
// The types of the CUDA driver API that the emulated driver implements. Source: CUDA Driver API
// reference, version 13.
#pragma once
#include <cstddef>
#include <cstdint>

namespace forge::emulated {
struct Module;
struct Kernel;
struct Stream;
struct Event;
struct Pool;
struct Graph;
struct GraphExec;
struct GraphNode;
struct Context;
}  // namespace forge::emulated

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = forge::emulated::Context*;
using CUmodule = forge::emulated::Module*;
using CUfunction = forge::emulated::Kernel*;
using CUstream = forge::emulated::Stream*;
using CUevent = forge::emulated::Event*;
using CUmemoryPool = forge::emulated::Pool*;
using CUgraph = forge::emulated::Graph*;
using CUgraphExec = forge::emulated::GraphExec*;
using CUgraphNode = forge::emulated::GraphNode*;
using CUhostFn = void (*)(void* user_data);

enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
  CUDA_ERROR_UNKNOWN = 999,
};

struct CUuuid {
  char bytes[16];
};
struct CUlaunchAttribute {
  int id;
  char pad[4];
  char value[64];
};
struct CUlaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CUstream stream;
  CUlaunchAttribute* attributes;
  unsigned attribute_count;
};
struct CUDA_KERNEL_NODE_PARAMS {  // version 2
  CUfunction function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;
  void* kernel;
  CUcontext context;
};
struct CUgraphExecUpdateResultInfo {
  int result;
  CUgraphNode error_node, error_from_node;
};
