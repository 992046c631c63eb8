// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/device/device.h"

#include "base/parallel.h"
#include "ir/analysis/in_place.h"
#include "runtime/device/segment_checks.h"

namespace forge::cuda {
namespace {

static_assert(codegen::kScratchAlignment == kAlignment);

ir::Candidate NodeOf(const CompileRequest& r) { return {*r.op, r.in, r.out}; }

struct Described {
  codegen::Kernel kernel;
  std::string what;
};

std::vector<Artifact> ArtifactsOf(std::span<const Described> kernels, KernelStore& store) {
  std::vector<Artifact> all;
  for (const auto& [kernel, what] : kernels) {
    const std::string text = codegen::ToText(kernel);
    all.push_back({kernel.name + ".kernel", {text.begin(), text.end()}});
    const std::string source = codegen::PrintCuda(kernel, store.caps(), what).text;
    all.push_back({kernel.name + ".cu", {source.begin(), source.end()}});
    if (const auto image = store.Image(kernel, what); image.ok())
      all.push_back({kernel.name + (IsCubin(*image) ? ".cubin" : ".ptx"),
                     {image->image.begin(), image->image.end()}});
  }
  return all;
}

// "matmul: f32[2, 3], f32[3, 4] -> f32[2, 4]"
std::string DescriptionOf(const CompileRequest& request) {
  const auto list = [](ir::TypeSpan types) {
    std::string out;
    for (const ir::Type& t : types) out += (out.empty() ? "" : ", ") + (t ? t.ToText() : "-");
    return out;
  };
  return fmt::format("{}: {} -> {}", request.name, list(request.in), list(request.out));
}

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
      planner_(context_->caps(), tuned),
      threads_(threads) {}

absl::StatusOr<std::shared_ptr<CudaDevice>> CudaDevice::Open(
    const ContextRef& context, DeviceInfo info, absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc,
    const DeviceOptions& options) {
  const DeviceFacts& facts = context->facts();
  const auto tuned = std::make_shared<codegen::TunedChoices>(
      TunedFile(facts, options.cache),
      fmt::format("forge cuda tuned 1, {}, driver {}", facts.name, facts.driver_version));
  const int threads = options.threads > 0 ? options.threads : CpuCount();
  std::shared_ptr<CudaDevice> d(new CudaDevice(context, std::move(info), tuned, threads));
  d->kernels_ = std::make_shared<KernelStore>(context, std::move(nvrtc), options.cache);
  FORGE_ASSIGN_OR_RETURN(d->queue_, Queue::Create(context));
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

absl::StatusOr<ProgramRef> CudaDevice::CompileOne(const CompileRequest& request) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  const ir::Candidate node = NodeOf(request);
  FORGE_ASSIGN_OR_RETURN(codegen::PlannedNode planned,
                         planner_.Plan(node, {.choice = request.choice, .once = request.once}));
  const auto operands = static_cast<uint32_t>(request.in.size() + request.out.size());
  FORGE_ASSIGN_OR_RETURN(codegen::StepPlan steps,
                         codegen::PlanStep(planned.body, operands, planned.made));
  CudaProgram::Parts parts;
  parts.kernel = planned.made.kernel;
  parts.scalars = std::move(steps.scalars);
  parts.scratch_bytes = steps.scratch_bytes;
  parts.seconds = context_->rates().Seconds(node);
  const std::string what = DescriptionOf(request);
  std::vector<Described> kernels;
  for (size_t i = 0; i < planned.made.launches.size(); ++i) {
    PlannedLaunch one;
    static_cast<codegen::LaunchPlan&>(one) = std::move(steps.launches[i]);
    codegen::Kernel& kernel = planned.made.launches[i].kernel;
    FORGE_ASSIGN_OR_RETURN(one.loaded, kernels_->Get(kernel, what));
    parts.launches.push_back(std::move(one));
    kernels.push_back({std::move(kernel), what});
  }
  const ir::Function& body = *planned.body.function;
  // Absent operands would number the others anew.
  if (body.arguments().size() == request.in.size())
    parts.overwritable = ir::OverwritableArguments(body);
  if (const auto update = ir::UpdateOf(body)) {
    FORGE_ASSIGN_OR_RETURN(const ir::Dim bytes, update->written.bytes());
    parts.update = Program::Update{update->operand, static_cast<uint64_t>(bytes.max())};
  }
  parts.artifacts = [kernels = std::move(kernels), store = kernels_] {
    return ArtifactsOf(kernels, *store);
  };
  return ProgramRef(std::make_shared<CudaProgram>(std::move(parts)));
}

std::vector<absl::StatusOr<ProgramRef>> CudaDevice::Compile(
    std::span<const CompileRequest> requests, CompileProgress progress) {
  std::vector<absl::StatusOr<ProgramRef>> out(requests.size(), Aborted("cancelled"));
  std::atomic<size_t> done{0};
  std::atomic<bool> goes_on = true;
  ParallelFor(requests.size(), threads_, [&](size_t i) {
    if (!goes_on) return;
    out[i] = CompileOne(requests[i]);
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
  return planner_.Choices(NodeOf(request), most);
}

absl::Status CudaDevice::Prefer(const CompileRequest& request) {
  return planner_.Prefer(NodeOf(request), request.choice);
}

absl::StatusOr<SegmentRef> CudaDevice::Record(const SegmentSpec& spec) {
  FORGE_RETURN_IF_ERROR(context_->CanRun());
  FORGE_RETURN_IF_ERROR(CheckSteps<CudaProgram>(spec));
  return SegmentRef(std::make_shared<CudaSegment>(spec, context_));
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
