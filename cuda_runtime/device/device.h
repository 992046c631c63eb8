// SPDX-License-Identifier: Apache-2.0
// The device contract on CUDA.
#pragma once
#include "codegen/target/gpu_target.h"
#include "cuda_runtime/device/node_compiler.h"
#include "cuda_runtime/submission/segment.h"

namespace forge::cuda {

// What a device is made of.
struct DeviceParts {
  ContextRef context;
  DeviceInfo info;
  absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc;
  ProductLibraryRef library = nullptr;  // null: products are computed by kernels alone
  bool graphs = true;                   // replays are CUDA graphs
  NvtxRef nvtx = nullptr;               // steps are ranges of it; null: they are not
};

class CudaDevice final : public Device {
 public:
  // errors: Unavailable, ResourceExhausted
  static absl::StatusOr<std::shared_ptr<CudaDevice>> Open(DeviceParts parts,
                                                          const DeviceOptions& options);
  ~CudaDevice() override;

  const DeviceInfo& info() const override { return info_; }
  const ir::Target& target() const override { return target_; }
  absl::StatusOr<BufferRef> Allocate(Memory kind, uint64_t bytes) override;
  uint64_t largest_buffer() const override;
  absl::StatusOr<BufferRef> Import(const Bytes& bytes) override;
  absl::StatusOr<std::span<uint8_t>> Map(Buffer& b) override;
  absl::StatusOr<Point> Copy(const CopyRange& range, std::span<const Point> wait) override;
  uint64_t MemoryLeft() const override;
  std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                  CompileProgress progress) override;
  CompileCounts compile_counts() const override;
  std::vector<std::string> Choices(const CompileRequest& request, size_t most) override;
  absl::Status Prefer(const CompileRequest& request) override;
  bool keeps_step_values() const override { return true; }
  absl::StatusOr<SegmentRef> Record(const SegmentSpec& spec) override;
  absl::StatusOr<Point> Submit(const SegmentRef& segment, const SubmitArgs& args) override;
  absl::StatusOr<std::vector<StepTime>> Timestamps(const Segment& s) override;
  absl::Status Health() override { return context_->Health(); }

 private:
  CudaDevice(ContextRef context, DeviceInfo info,
             const std::shared_ptr<codegen::TunedChoices>& tuned, int threads);
  absl::StatusOr<CudaBuffer*> Own(Buffer* b) const;

  ContextRef context_;
  DeviceInfo info_;
  codegen::GpuTarget target_;
  const int threads_;
  std::shared_ptr<KernelStore> kernels_;
  std::unique_ptr<const NodeCompiler> compiler_;
  bool graphs_ = true;
  std::shared_ptr<Queue> queue_;
};

}  // namespace forge::cuda
