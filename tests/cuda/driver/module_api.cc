// SPDX-License-Identifier: Apache-2.0
// cuModule*, cuFunc*, cuLaunch*, cuOccupancy*.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/cuda/driver/entry.h"
#include "tests/cuda/driver/launch.h"

namespace {

using forge::emulated::Device;
using forge::emulated::GraphNode;
using forge::emulated::Kernel;
using forge::emulated::MakeLaunch;
using forge::emulated::Module;
using forge::emulated::Schedule;
using forge::emulated::ValidStream;

constexpr int kErrorLog = 5, kErrorLogBytes = 6;  // CUjit_option

void WriteLog(const std::string& text, unsigned count, const int* options, void** values) {
  char* buffer = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == kErrorLog) buffer = static_cast<char*>(values[i]);
    if (options[i] == kErrorLogBytes) bytes = reinterpret_cast<size_t>(values[i]);
  }
  if (buffer != nullptr && bytes > 0) std::snprintf(buffer, bytes, "%s", text.c_str());
}

// The number of ".target sm_80", 0 where there is none.
int TargetOf(std::string_view target) {
  int number = 0;
  for (const char c : target)
    if (c >= '0' && c <= '9' && number < 1000) number = number * 10 + (c - '0');
  return number;
}

CUresult LoadPtx(CUmodule* module, const char* image, std::string& log) {
  static constexpr unsigned char kElf[] = {0x7f, 'E', 'L', 'F'},
                                 kFatbin[] = {0x50, 0xed, 0x55, 0xba};
  if (std::memcmp(image, kElf, 4) == 0 || std::memcmp(image, kFatbin, 4) == 0) {
    log = "the emulated device runs PTX only, no machine code";
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  auto loaded = forge::ptx::LoadedModule::Load(image, Device::Get().memory());
  if (!loaded.ok()) {
    log = std::string(forge::Message(loaded.status()));
    std::fprintf(stderr, "emulated CUDA: %s\n", log.c_str());
    return std::strstr(image, ".version") == nullptr ? CUDA_ERROR_INVALID_IMAGE
                                                     : CUDA_ERROR_INVALID_PTX;
  }
  const auto& s = Device::Get().settings();
  const int target = TargetOf((*loaded)->module().target);
  const bool specific = (*loaded)->module().target.ends_with('a');
  if (target > s.major * 10 + s.minor || (specific && target != s.major * 10 + s.minor)) {
    log = "the PTX is for sm_" + std::to_string(target);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  auto owned = std::make_unique<Module>();
  owned->loaded = *std::move(loaded);
  *module = Device::Get().modules.Add(std::move(owned));
  return CUDA_SUCCESS;
}

CUresult LoadWithOptions(CUmodule* module, const void* image, unsigned count, const int* options,
                         void** values) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string log;
  const CUresult result = LoadPtx(module, static_cast<const char*>(image), log);
  if (result != CUDA_SUCCESS) WriteLog(log, count, options, values);
  return result;
}

CUresult LaunchNow(const CUDA_KERNEL_NODE_PARAMS& params, CUstream stream) {
  if (!ValidStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  GraphNode node;
  if (const CUresult result = MakeLaunch(params, node); result != CUDA_SUCCESS) return result;
  return Schedule::Get().Add(stream, std::move(node));
}

int BlocksPerMultiprocessor(const Kernel& kernel, int threads, size_t dynamic) {
  if (threads <= 0) return 0;
  const uint64_t shared = kernel.program->shared_declared + dynamic + 1024;
  const int by_threads = Device::Get().Attribute(39) / ((threads + 31) / 32 * 32);
  const int by_shared =
      static_cast<int>(static_cast<uint64_t>(Device::Get().Attribute(81)) / shared);
  return std::min({by_threads, by_shared, Device::Get().Attribute(106)});
}

}  // namespace

CU_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, int* options,
                          void** values) {
  CU_ENTER_CONTEXT(cuModuleLoadDataEx);
  return LoadWithOptions(module, image, count, options, values);
}

CU_API cuModuleLoadData(CUmodule* module, const void* image) {
  CU_ENTER_CONTEXT(cuModuleLoadData);
  return LoadWithOptions(module, image, 0, nullptr, nullptr);
}

CU_API cuModuleUnload(CUmodule module) {
  CU_ENTER(cuModuleUnload);
  const CUresult result = Schedule::Get().Drain();
  return Device::Get().modules.Remove(module) == nullptr ? CUDA_ERROR_INVALID_HANDLE : result;
}

CU_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  CU_ENTER_CONTEXT(cuModuleGetFunction);
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Device::Get().modules.Has(module)) return CUDA_ERROR_INVALID_HANDLE;
  const auto program = module->loaded->Kernel(name);
  if (!program.ok()) return CUDA_ERROR_NOT_FOUND;
  std::unique_ptr<Kernel>& kernel = module->kernels[name];
  if (kernel == nullptr)
    kernel = std::make_unique<Kernel>(Kernel{.program = *program, .module = module});
  *function = kernel.get();
  return CUDA_SUCCESS;
}

CU_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                            const char* name) {
  CU_ENTER_CONTEXT(cuModuleGetGlobal_v2);
  if (!Device::Get().modules.Has(module)) return CUDA_ERROR_INVALID_HANDLE;
  const auto global = module->loaded->Global(name);
  if (!global.ok()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = global->first;
  if (bytes != nullptr) *bytes = global->second;
  return CUDA_SUCCESS;
}

CU_API cuFuncGetAttribute(int* value, int attribute, CUfunction function) {
  CU_ENTER_CONTEXT(cuFuncGetAttribute);
  if (value == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const forge::ptx::Program& p = *function->program;
  const auto& s = Device::Get().settings();
  switch (attribute) {
    case 0:
      *value = p.max_threads != 0 ? p.max_threads : 1024;
      break;
    case 1:
      *value = static_cast<int>(p.shared_declared);
      break;
    case 2:
      *value = 0;
      break;
    case 3:
      *value = static_cast<int>(p.local_bytes);
      break;
    case 4:
      *value = 32;
      break;  // registers: ptxas would know
    case 5:
    case 6:
      *value = s.major * 10 + s.minor;
      break;
    case 8:
      *value = function->max_dynamic_shared;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CU_API cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  CU_ENTER_CONTEXT(cuFuncSetAttribute);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == 8) {
    const int room =
        Device::Get().SharedOptin() - static_cast<int>(function->program->shared_declared);
    if (value < 0 || value > room) return CUDA_ERROR_INVALID_VALUE;
    function->max_dynamic_shared = value;
  }
  return CUDA_SUCCESS;
}

CU_API cuFuncSetCacheConfig(CUfunction function, int) {
  CU_ENTER_CONTEXT(cuFuncSetCacheConfig);
  return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

// NOLINTNEXTLINE(readability-function-size): the signature is the driver's
CU_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      CUstream stream, void** params, void** extra) {
  CU_ENTER_CONTEXT(cuLaunchKernel);
  return LaunchNow({function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                    params, extra, nullptr, nullptr},
                   stream);
}

CU_API cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction function, void** params, void** extra) {
  CU_ENTER_CONTEXT(cuLaunchKernelEx);
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < c->attribute_count; ++i)
    if (c->attributes[i].id == 4 || c->attributes[i].id == 2)
      return CUDA_ERROR_NOT_SUPPORTED;  // clusters, cooperation
  return LaunchNow({function, c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y, c->block_z,
                    c->shared_bytes, params, extra, nullptr, nullptr},
                   c->stream);
}

CU_API cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  CU_ENTER_CONTEXT(cuLaunchHostFunc);
  if (!ValidStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode node;
  node.type = GraphNode::Type::kHost;
  node.run = [=] {
    function(data);
    return CUDA_SUCCESS;
  };
  return Schedule::Get().Add(stream, std::move(node));
}

CU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                   size_t dynamic) {
  CU_ENTER_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  if (blocks == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *blocks = BlocksPerMultiprocessor(*function, threads, dynamic);
  return CUDA_SUCCESS;
}

CU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                            int threads, size_t dynamic, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic);
}

CU_API cuOccupancyMaxPotentialBlockSize(int* least_grid, int* threads, CUfunction function,
                                        size_t (*dynamic)(int), size_t fixed, int limit) {
  CU_ENTER_CONTEXT(cuOccupancyMaxPotentialBlockSize);
  if (least_grid == nullptr || threads == nullptr || function == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  int best = 0;
  for (int n = limit > 0 ? std::min(limit, 1024) : 1024; n >= 32; n -= 32) {
    const int blocks =
        BlocksPerMultiprocessor(*function, n, dynamic != nullptr ? dynamic(n) : fixed);
    if (blocks * n <= best) continue;
    best = blocks * n;
    *threads = n;
    *least_grid = blocks * Device::Get().Attribute(16);
  }
  return best == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
