// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/device/device.h"

#include "base/platform.h"
#include "runtime/device/segment_checks.h"

namespace forge::vk {
namespace {

constexpr uint64_t kNothingBytes = 256;

}  // namespace

VulkanDevice::VulkanDevice(const ContextRef& context, DeviceInfo info,
                           const std::shared_ptr<codegen::TunedChoices>& tuned)
    : context_(context),
      info_(std::move(info)),
      target_(fmt::format("vulkan: {}", info_.name), context->caps(), context->rates(), tuned) {}

absl::StatusOr<std::shared_ptr<VulkanDevice>> VulkanDevice::Open(const ContextRef& context,
                                                                 DeviceInfo info,
                                                                 const DeviceOptions& options) {
  const Queries& q = context->queries();
  const auto tuned = std::make_shared<codegen::TunedChoices>(
      options.cache ? CacheFile(q, ".tuned") : std::filesystem::path(), CacheTitle(q, "tuned 2"));
  std::shared_ptr<VulkanDevice> d(new VulkanDevice(context, std::move(info), tuned));
  d->heap_ = std::make_shared<Heap>(context);
  FORGE_ASSIGN_OR_RETURN(d->pipelines_,
                         PipelineStore::Create(context, options.cache, options.statistics));
  const int threads = options.threads > 0 ? options.threads : CpuCount();
  d->compiler_ = std::make_unique<Compiler>(context, d->pipelines_, tuned, options.cache, threads);
  d->queue_ = std::make_shared<Queue>(context);
  return d;
}

VulkanDevice::~VulkanDevice() {
  if (queue_) queue_->Close();
}

absl::StatusOr<VulkanBufferRef> VulkanDevice::Nothing() {
  std::lock_guard lock(mutex_);
  if (!nothing_) {
    FORGE_ASSIGN_OR_RETURN(nothing_, VulkanBuffer::Create(heap_, Memory::kDevice, kNothingBytes));
  }
  return nothing_;
}

absl::StatusOr<VulkanBuffer*> VulkanDevice::Own(Buffer* b) const {
  auto* own = dynamic_cast<VulkanBuffer*>(b);
  if (own == nullptr || own->context() != context_.get())
    return InvalidArgument("the buffer belongs to another device");
  return own;
}

absl::StatusOr<BufferRef> VulkanDevice::Allocate(Memory kind, uint64_t bytes) {
  return VulkanBuffer::Create(heap_, kind, bytes);
}

absl::StatusOr<BufferRef> VulkanDevice::Import(const Bytes& bytes) {
  return VulkanBuffer::Import(heap_, bytes);
}

absl::StatusOr<std::span<uint8_t>> VulkanDevice::Map(Buffer& b) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  FORGE_ASSIGN_OR_RETURN(VulkanBuffer * own, Own(&b));
  return own->Mapped();
}

absl::StatusOr<Point> VulkanDevice::Copy(const CopyRange& range, std::span<const Point> wait) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  FORGE_ASSIGN_OR_RETURN(VulkanBuffer * from, Own(range.from.get()));
  FORGE_ASSIGN_OR_RETURN(VulkanBuffer * to, Own(range.to.get()));
  if (from->memory() == Memory::kUpload) FORGE_RETURN_IF_ERROR(from->Flush());
  Job job;
  FORGE_ASSIGN_OR_RETURN(
      job.recording, Recording::OfCopy(context_, {*from, range.at, *to, range.to_at, range.bytes}));
  job.keep = {from->shared_from_this(), to->shared_from_this()};
  if (to->memory() != Memory::kDevice) job.readbacks.push_back(to->shared_from_this());
  return queue_->Submit(std::move(job), wait);
}

CompileCounts VulkanDevice::compile_counts() const {
  return {.compiled = static_cast<int>(pipelines_->compiled()),
          .cached = static_cast<int>(pipelines_->cached()),
          .printed = static_cast<int>(compiler_->printed())};
}

absl::StatusOr<SegmentRef> VulkanDevice::Record(const SegmentSpec& spec) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  FORGE_RETURN_IF_ERROR(CheckSteps<VulkanProgram>(spec));
  FORGE_ASSIGN_OR_RETURN(VulkanBufferRef nothing, Nothing());
  return SegmentRef(std::make_shared<VulkanSegment>(spec, heap_, std::move(nothing)));
}

absl::StatusOr<Point> VulkanDevice::Submit(const SegmentRef& segment, const SubmitArgs& args) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  auto* own = dynamic_cast<VulkanSegment*>(segment.get());
  if (own == nullptr) return InvalidArgument("the segment belongs to another device");
  FORGE_ASSIGN_OR_RETURN(Job job, own->Prepare(args, *queue_));
  RecordingRef recording = job.recording;
  FORGE_ASSIGN_OR_RETURN(const Point point, queue_->Submit(std::move(job), args.wait));
  own->Submitted(std::move(recording), point.value);
  return point;
}

absl::Status VulkanDevice::Wait(const Point& p, int64_t nanoseconds) {
  FORGE_RETURN_IF_ERROR(Device::Wait(p, nanoseconds));
  return context_->instance().Validation();
}

absl::StatusOr<std::vector<StepTime>> VulkanDevice::Timestamps(const Segment& s) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  const auto* own = dynamic_cast<const VulkanSegment*>(&s);
  if (own == nullptr) return InvalidArgument("the segment belongs to another device");
  if (!own->last_recording() || !queue_->Reached(own->last_value()))
    return InvalidArgument("the segment has no finished submission");
  return own->last_recording()->Times();
}

absl::Status VulkanDevice::Health() {
  FORGE_RETURN_IF_ERROR(context_->Health());
  return context_->instance().Validation();
}

}  // namespace forge::vk
