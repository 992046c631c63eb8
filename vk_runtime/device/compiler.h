// SPDX-License-Identifier: Apache-2.0
// Compiles requests to programs: kernels, SPIR-V, pipelines; on all cores.
#pragma once
#include "base/parallel.h"
#include "codegen/lower/sharing.h"
#include "codegen/target/planner.h"
#include "vk_runtime/pipelines/program.h"
#include "vk_runtime/pipelines/spirv_file.h"

namespace forge::vk {

// Compiles programs for one device.
class Compiler {
 public:
  // use_file: keep printed SPIR-V in the cache folder     threads: host threads
  Compiler(const ContextRef& context, PipelineStoreRef pipelines,
           std::shared_ptr<codegen::TunedChoices> tuned, bool use_file, int threads)
      : context_(context),
        pipelines_(std::move(pipelines)),
        planner_(context->caps(), std::move(tuned)),
        spirv_(*context, use_file),
        threads_(threads),
        sharing_(static_cast<size_t>(context->caps().max_scalar_bytes) / sizeof(int32_t)) {}
  // Returns one result for each request, in order; see Device::Compile. May be called from any
  // thread.
  std::vector<absl::StatusOr<ProgramRef>> Run(std::span<const CompileRequest> requests,
                                              CompileProgress progress);
  // See Device::Choices and Device::Prefer.
  std::vector<std::string> Choices(const CompileRequest& request, size_t most) const;
  absl::Status Prefer(const CompileRequest& request);
  // Number of kernels printed, rather than loaded from the cache.
  int64_t printed() const { return spirv_.printed(); }

 private:
  // A kernel of this device. The first thread that requests it compiles it; others wait.
  struct Slot {
    std::once_flag once;
    absl::Status status;
    PipelineRef pipeline;
    std::shared_ptr<const codegen::Kernel> kernel;
  };
  using SlotRef = std::shared_ptr<Slot>;

  // The kernels of a request.
  struct Planned {
    codegen::PlannedNode node;
    ProgramRef program;  // set for shaders written by hand
  };

  // Merges kernels that differ only in literals.
  void Share(std::span<const CompileRequest> requests, std::span<absl::StatusOr<Planned>> planned);
  absl::StatusOr<Planned> Plan(const CompileRequest& request);
  absl::StatusOr<ProgramRef> Compile(const CompileRequest& request, const Planned& planned);
  absl::StatusOr<SlotRef> KernelFor(const codegen::Kernel& kernel, uint32_t operands);
  // Returns the SPIR-V of a kernel with this hash, printed now or in an earlier run.
  absl::StatusOr<KernelCode> CodeOf(const codegen::Kernel& kernel, uint32_t operands,
                                    uint64_t hash);
  absl::Status Make(const codegen::Kernel& kernel, KernelCode code, Slot& slot);
  void WarmUpFresh();

  ContextRef context_;
  PipelineStoreRef pipelines_;
  codegen::Planner planner_;
  SpirvFile spirv_;
  int threads_;
  std::mutex sharing_mutex_;
  codegen::KernelSharing sharing_;  // under sharing_mutex_
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, SlotRef> kernels_;  // by codegen::Hash, under mutex_
  // Kernels not yet dispatched, on drivers that compile at the first dispatch; under mutex_.
  std::vector<KernelCode> fresh_;
};

}  // namespace forge::vk
