// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by NVRTC and loaded by the driver: once for each source, cached in memory and on
// disk.
#pragma once
#include <map>

#include "absl/container/flat_hash_map.h"
#include "codegen/cuda/print_cuda.h"
#include "cuda_runtime/api/context.h"
#include "cuda_runtime/api/nvrtc.h"
#include "cuda_runtime/kernels/module_file.h"
#include "runtime/device/device.h"

namespace forge::cuda {

// A loaded kernel. Immutable.
struct LoadedKernel {
  std::shared_ptr<const codegen::Kernel> kernel;
  int operands = 0;               // pointers that it takes, before the scalars
  uint32_t shared_bytes = 0;      // that launches ask for
  OwnedModule module;             // null on a device that only compiles
  CuFunction function = nullptr;  // of `module`
  std::vector<KernelStatistic> statistics;
};
using LoadedKernelRef = std::shared_ptr<const LoadedKernel>;

// The numbers of registers, spilled and shared bytes in the log of NVRTC.
std::vector<KernelStatistic> StatisticsIn(std::string_view log, const std::string& kernel);

// True where the cache folder has kernels for this compute capability, with which a device serves
// without NVRTC.
bool HasCompiledKernels(int capability);

class KernelStore {
 public:
  // nvrtc: without it, kernels that NVRTC has compiled before are all there are
  // use_files: keep compiled kernels in the cache folder
  KernelStore(ContextRef context, absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc,
              bool use_files);
  // Returns a kernel; equal ones share one. May be called from any thread.
  //   description: op and shapes     errors: of NVRTC and of the driver, naming the kernel
  absl::StatusOr<LoadedKernelRef> Get(const codegen::Kernel& kernel, std::string_view description);

  // Returns what the driver loads, or would load.
  //   errors: those of NVRTC
  absl::StatusOr<KernelImage> Image(const codegen::Kernel& kernel, std::string_view description);

  const codegen::Caps& caps() const { return context_->caps(); }
  int compiled() const { return compiled_; }
  int cached() const { return cached_; }

 private:
  struct Slot {
    std::once_flag once;
    absl::Status status;
    LoadedKernelRef loaded;
  };
  absl::StatusOr<LoadedKernelRef> Make(const codegen::Kernel& kernel, std::string_view description);
  absl::StatusOr<KernelImage> Compile(const codegen::CudaCode& code);
  absl::StatusOr<OwnedModule> Load(const KernelImage& image);
  std::string Title() const;
  bool Takes(std::string_view title) const;
  std::filesystem::path FileOf(uint64_t key) const;

  ContextRef context_;
  absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc_;
  const bool use_files_;
  std::string architecture_;             // "sm_80", or "compute_80" for PTX
  std::atomic<bool> takes_cubin_{true};  // false: the driver has refused machine code
  std::atomic<int> compiled_{0}, cached_{0};
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Slot>> slots_;  // under mutex_
};

}  // namespace forge::cuda
