// SPDX-License-Identifier: Apache-2.0
// Makes programs: from requests to kernels to pipelines, on all cores.
#pragma once
#include "codegen/schedule.h"
#include "vk_runtime/program.h"

namespace forge::vk {

class Compiler {
 public:
  Compiler(const ContextRef& context, PipelineStoreRef pipelines, int threads)
      : context_(context), pipelines_(std::move(pipelines)), threads_(threads) {}
  // One result for each request, in order; see Device::Compile. Any thread.
  std::vector<absl::StatusOr<ProgramRef>> Run(std::span<const CompileRequest> requests,
                                              absl::FunctionRef<void(size_t)> progress);

 private:
  // A kernel of this device, made by whoever asks first while others wait.
  struct Slot {
    std::once_flag once;
    absl::Status status;
    PipelineRef pipeline;
    std::shared_ptr<const codegen::Kernel> kernel;
  };
  using SlotRef = std::shared_ptr<Slot>;

  absl::StatusOr<ProgramRef> Compile(const CompileRequest& request);
  absl::StatusOr<SlotRef> KernelFor(codegen::Kernel kernel, uint32_t operands);
  absl::Status Make(const codegen::Kernel& kernel, uint32_t operands, Slot& slot);

  ContextRef context_;
  PipelineStoreRef pipelines_;
  int threads_;
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, SlotRef> kernels_;  // by codegen::Hash, under mutex_
};

}  // namespace forge::vk
