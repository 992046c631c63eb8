// SPDX-License-Identifier: Apache-2.0
// The Vulkan device: implements runtime/device/device.h.
#pragma once
#include "codegen/target/gpu_target.h"
#include "vk_runtime/device/compiler.h"
#include "vk_runtime/submission/queue.h"
#include "vk_runtime/submission/segment.h"

namespace forge::vk {

class VulkanDevice final : public Device {
 public:
  // Opens a device.
  //   errors: as Driver::Open
  static absl::StatusOr<std::shared_ptr<VulkanDevice>> Open(const ContextRef& context,
                                                            DeviceInfo info,
                                                            const DeviceOptions& options);
  ~VulkanDevice() override;
  const DeviceInfo& info() const override { return info_; }
  const ir::Target& target() const override { return target_; }
  absl::StatusOr<BufferRef> Allocate(Memory kind, uint64_t bytes) override;
  uint64_t largest_buffer() const override { return heap_->largest_allocation(); }
  bool shares_memory() const override { return context_->queries().shares_memory(); }
  absl::StatusOr<BufferRef> Import(const Bytes& bytes) override;
  absl::StatusOr<std::span<uint8_t>> Map(Buffer& b) override;
  absl::StatusOr<Point> Copy(const CopyRange& range, std::span<const Point> wait) override;
  uint64_t MemoryLeft() const override { return heap_->Left(); }
  std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                  CompileProgress progress) override {
    return compiler_->Run(requests, progress);
  }
  CompileCounts compile_counts() const override;
  std::vector<std::string> Choices(const CompileRequest& request, size_t most) override {
    return compiler_->Choices(request, most);
  }
  absl::Status Prefer(const CompileRequest& request) override { return compiler_->Prefer(request); }
  bool keeps_step_values() const override { return true; }
  absl::StatusOr<SegmentRef> Record(const SegmentSpec& spec) override;
  absl::StatusOr<Point> Submit(const SegmentRef& segment, const SubmitArgs& args) override;
  absl::Status Wait(const Point& p, int64_t nanoseconds) override;
  absl::StatusOr<std::vector<StepTime>> Timestamps(const Segment& s) override;
  absl::Status Health() override;

  const ContextRef& context() const { return context_; }
  PipelineStore& pipelines() { return *pipelines_; }

 private:
  VulkanDevice(const ContextRef& context, DeviceInfo info,
               const std::shared_ptr<codegen::TunedChoices>& tuned);
  absl::StatusOr<VulkanBuffer*> Own(Buffer* b) const;
  // The buffer that is bound for operands without bytes. Allocated by the first recording, because
  // a device that only compiles may have no memory.
  absl::StatusOr<VulkanBufferRef> Nothing();

  ContextRef context_;
  DeviceInfo info_;
  codegen::GpuTarget target_;
  HeapRef heap_;
  std::mutex mutex_;
  VulkanBufferRef nothing_;  // under mutex_; see Nothing()
  PipelineStoreRef pipelines_;
  std::unique_ptr<Compiler> compiler_;
  std::shared_ptr<Queue> queue_;
};

}  // namespace forge::vk
