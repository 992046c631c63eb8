// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/device/device.h"

#include "base/parallel.h"
#include "runtime/device/segment_checks.h"

namespace forge::cuda {
namespace {

static_assert(codegen::kScratchAlignment == kAlignment);

std::filesystem::path TunedFile(const DeviceFacts& facts, bool cache) {
  const std::filesystem::path folder = CacheFolder();
  if (!cache || folder.empty()) return {};
  std::string name;
  for (const char c : facts.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return folder / "cuda" / (name + ".tuned");
}

}  // namespace

CudaDevice::CudaDevice(ContextRef context, DeviceInfo info,
                       const std::shared_ptr<codegen::TunedChoices>& tuned, int threads)
    : context_(std::move(context)),
      info_(std::move(info)),
      target_(fmt::format("cuda: {}", info_.name), context_->caps(), context_->rates(), tuned),
      threads_(threads) {}

absl::StatusOr<std::shared_ptr<CudaDevice>> CudaDevice::Open(DeviceParts parts,
                                                             const DeviceOptions& options) {
  const ContextRef& context = parts.context;
  const DeviceFacts& facts = context->facts();
  const auto tuned = std::make_shared<codegen::TunedChoices>(
      TunedFile(facts, options.cache),
      fmt::format("forge cuda tuned 1, {}, driver {}", facts.name, facts.driver_version));
  const int threads = options.threads > 0 ? options.threads : CpuCount();
  std::shared_ptr<CudaDevice> d(new CudaDevice(context, std::move(parts.info), tuned, threads));
  d->kernels_ = std::make_shared<KernelStore>(context, std::move(parts.nvrtc), options.cache);
  d->compiler_ =
      std::make_unique<const NodeCompiler>(context, d->kernels_, std::move(parts.library), tuned);
  // The steps of a graph are launched at once.
  d->graphs_ = parts.graphs && parts.nvtx == nullptr;
  FORGE_ASSIGN_OR_RETURN(d->queue_, Queue::Create(context, std::move(parts.nvtx)));
  return d;
}

CudaDevice::~CudaDevice() {
  if (queue_) queue_->Close();
}

absl::StatusOr<CudaBuffer*> CudaDevice::Own(Buffer* b) const {
  auto* own = dynamic_cast<CudaBuffer*>(b);
  if (own == nullptr || own->context() != context_.get())
    return InvalidArgument("the buffer belongs to another device");
  return own;
}

absl::StatusOr<BufferRef> CudaDevice::Allocate(Memory kind, uint64_t bytes) {
  return CudaBuffer::Create(context_, kind, bytes);
}

uint64_t CudaDevice::largest_buffer() const {
  return std::max<uint64_t>(context_->facts().memory_bytes, kAlignment);
}

absl::StatusOr<BufferRef> CudaDevice::Import(const Bytes&) {
  return Unimplemented("the GPU reads its own memory faster than that of the host");
}

absl::StatusOr<std::span<uint8_t>> CudaDevice::Map(Buffer& b) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  FORGE_ASSIGN_OR_RETURN(CudaBuffer * own, Own(&b));
  if (own->mapped() == nullptr) return InvalidArgument("device memory is not mapped");
  return std::span<uint8_t>(own->mapped(), own->size());
}

absl::StatusOr<Point> CudaDevice::Copy(const CopyRange& range, std::span<const Point> wait) {
  FORGE_RETURN_IF_ERROR(context_->CanRun());
  FORGE_ASSIGN_OR_RETURN(CudaBuffer * from, Own(range.from.get()));
  FORGE_ASSIGN_OR_RETURN(CudaBuffer * to, Own(range.to.get()));
  Job job;
  FORGE_ASSIGN_OR_RETURN(job.list, LaunchList::OfCopy(range, *from, *to));
  job.keep = {range.from, range.to};
  return queue_->Submit(std::move(job), wait);
}

uint64_t CudaDevice::MemoryLeft() const {
  if (!context_->CanRun().ok()) return 0;
  const Context::Current current(*context_);
  size_t available = 0, total = 0;
  return context_->api().memory_info(&available, &total) == kCuSuccess ? available : 0;
}

std::vector<absl::StatusOr<ProgramRef>> CudaDevice::Compile(
    std::span<const CompileRequest> requests, CompileProgress progress) {
  std::vector<absl::StatusOr<ProgramRef>> out(requests.size(), Aborted("cancelled"));
  std::atomic<size_t> done{0};
  std::atomic<bool> goes_on = true;
  ParallelFor(requests.size(), threads_, [&](size_t i) {
    if (!goes_on) return;
    out[i] = context_->Health().ok() ? compiler_->Compile(requests[i]) : context_->Health();
    if (!progress(++done)) goes_on = false;
  });
  return out;
}

CompileCounts CudaDevice::compile_counts() const {
  return {.compiled = kernels_->compiled(),
          .cached = kernels_->cached(),
          .printed = kernels_->compiled() + kernels_->cached()};
}

std::vector<std::string> CudaDevice::Choices(const CompileRequest& request, size_t most) {
  return compiler_->Choices(request, most);
}

absl::Status CudaDevice::Prefer(const CompileRequest& request) {
  return compiler_->Prefer(request);
}

absl::StatusOr<SegmentRef> CudaDevice::Record(const SegmentSpec& spec) {
  FORGE_RETURN_IF_ERROR(context_->CanRun());
  FORGE_RETURN_IF_ERROR(CheckSteps<CudaProgram>(spec));
  return SegmentRef(std::make_shared<CudaSegment>(spec, context_, graphs_));
}

absl::StatusOr<Point> CudaDevice::Submit(const SegmentRef& segment, const SubmitArgs& args) {
  FORGE_RETURN_IF_ERROR(context_->CanRun());
  auto* own = dynamic_cast<CudaSegment*>(segment.get());
  if (own == nullptr) return InvalidArgument("the segment belongs to another device");
  FORGE_ASSIGN_OR_RETURN(Job job, own->Prepare(args, *queue_));
  job.keep.push_back(segment);
  FORGE_ASSIGN_OR_RETURN(const Point point, queue_->Submit(std::move(job), args.wait));
  own->Submitted(point.value);
  return point;
}

absl::StatusOr<std::vector<StepTime>> CudaDevice::Timestamps(const Segment& s) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  const auto* own = dynamic_cast<const CudaSegment*>(&s);
  if (own == nullptr) return InvalidArgument("the segment belongs to another device");
  if (own->last_value() == 0 || !queue_->Reached(own->last_value()))
    return InvalidArgument("the segment has no finished submission");
  return own->Times();
}

}  // namespace forge::cuda
