// SPDX-License-Identifier: Apache-2.0
// From a node to its program: kernels of Forge's schedules, or a product of cuBLASLt and a kernel
// for what remains.
#pragma once
#include "codegen/target/planner.h"
#include "cuda_runtime/kernels/program.h"
#include "runtime/device/device.h"

namespace forge::cuda {

// May be used from any thread.
class NodeCompiler {
 public:
  // library: null: products are computed by kernels alone
  NodeCompiler(ContextRef context, std::shared_ptr<KernelStore> kernels, ProductLibraryRef library,
               std::shared_ptr<codegen::TunedChoices> tuned)
      : context_(std::move(context)),
        kernels_(std::move(kernels)),
        library_(std::move(library)),
        tuned_(std::move(tuned)),
        planner_(context_->caps(), tuned_) {}

  // errors: those of Planner::Plan and KernelStore::Get
  absl::StatusOr<ProgramRef> Compile(const CompileRequest& request) const;
  // See Device.
  std::vector<std::string> Choices(const CompileRequest& request, size_t most) const;
  absl::Status Prefer(const CompileRequest& request) const;

 private:
  struct Described {
    codegen::Kernel kernel;
    std::string what;
  };
  absl::StatusOr<ProgramRef> CompileKernels(const CompileRequest& request,
                                            codegen::NodeBody own) const;
  absl::StatusOr<ProgramRef> CompileProduct(const CompileRequest& request,
                                            const codegen::Region& region,
                                            ProductOfBody product) const;
  bool WantsLibrary(const CompileRequest& request, const codegen::Region& region,
                    const ProductOfBody& product) const;
  absl::Status AddKernels(codegen::PlannedNode& planned, codegen::StepPlan steps,
                          const CompileRequest& request, CudaProgram::Parts& parts,
                          std::vector<Described>& described) const;
  void AddArtifacts(std::vector<Described> described, CudaProgram::Parts& parts) const;

  const ContextRef context_;
  const std::shared_ptr<KernelStore> kernels_;
  const ProductLibraryRef library_;
  const std::shared_ptr<codegen::TunedChoices> tuned_;
  const codegen::Planner planner_;
};

}  // namespace forge::cuda
