// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/device/compiler.h"

#include "base/hash.h"
#include "ir/analysis/in_place.h"
#include "vk_runtime/device/pipeline_warm_up.h"
#include "vk_runtime/pipelines/fixed_launch.h"

namespace forge::vk {
namespace {

static_assert(codegen::kScratchAlignment == kAlignment);
constexpr size_t kFewestWarmedUp = 4;  // fewer gain less than logical devices cost

ir::Candidate NodeOf(const CompileRequest& r) { return {*r.op, r.in, r.out}; }

// What a pipeline was made of, and what is this launch's own: others may have the same kernel.
struct LaunchedKernel {
  std::shared_ptr<const codegen::Kernel> kernel;
  std::array<ir::Dim, 3> grid;
  std::vector<ir::Dim> scalars;

  codegen::Kernel Own() const {
    codegen::Kernel k = *kernel;
    k.grid = grid;
    k.scalars = scalars;
    return k;
  }
};

std::vector<Artifact> ArtifactsOf(std::span<const LaunchedKernel> launched,
                                  const codegen::Caps& caps) {
  std::vector<Artifact> all;
  for (const LaunchedKernel& l : launched) {
    const codegen::Kernel k = l.Own();
    const std::string text = codegen::ToText(k);
    all.push_back({k.name + ".kernel", {text.begin(), text.end()}});
    all.push_back(SpirvArtifact(k.name, codegen::PrintSpirv(k, caps)));
  }
  return all;
}

}  // namespace

absl::StatusOr<KernelCode> Compiler::CodeOf(const codegen::Kernel& kernel, uint32_t operands,
                                            uint64_t hash) {
  if (auto words = spirv_.Find(hash)) return CodeWith(kernel, operands, std::move(*words));
  absl::StatusOr<KernelCode> code = PrintCode(kernel, operands, context_->caps());
  if (code.ok()) spirv_.Put(hash, code->spirv);
  return code;
}

absl::Status Compiler::Make(const codegen::Kernel& kernel, KernelCode code, Slot& slot) {
  FORGE_ASSIGN_OR_RETURN(slot.pipeline, pipelines_->Get(code));
  slot.kernel = std::make_shared<const codegen::Kernel>(kernel);
  if (!context_->caps().runs_on_cpu || !slot.pipeline->is_new) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  fresh_.push_back(std::move(code));
  return absl::OkStatus();
}

absl::StatusOr<Compiler::SlotRef> Compiler::KernelFor(const codegen::Kernel& kernel,
                                                      uint32_t operands) {
  const uint64_t key = HashMix(codegen::Hash(kernel), operands);
  SlotRef slot;
  {
    std::lock_guard lock(mutex_);
    SlotRef& entry = kernels_[key];
    if (!entry) entry = std::make_shared<Slot>();
    slot = entry;
  }
  std::call_once(slot->once, [&] {
    absl::StatusOr<KernelCode> code = CodeOf(kernel, operands, key);
    slot->status = code.ok() ? Make(kernel, *std::move(code), *slot) : code.status();
  });
  if (!slot->status.ok()) return slot->status;
  return slot;
}

std::vector<std::string> Compiler::Choices(const CompileRequest& request, size_t most) const {
  if (FindHandWritten(*request.op, request.in, context_->caps())) return {};
  return planner_.Choices(NodeOf(request), most);
}

absl::Status Compiler::Prefer(const CompileRequest& request) {
  return planner_.Prefer(NodeOf(request), request.choice);
}

absl::StatusOr<Compiler::Planned> Compiler::Plan(const CompileRequest& request) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  Planned planned;
  if (const auto shader = FindHandWritten(*request.op, request.in, context_->caps())) {
    FORGE_ASSIGN_OR_RETURN(planned.program, MakeProgram(*shader, *pipelines_));
    return planned;
  }
  FORGE_ASSIGN_OR_RETURN(
      planned.node,
      planner_.Plan(NodeOf(request),
                    {.choice = request.choice, .once = request.once, .approximate = request.fast}));
  return planned;
}

absl::StatusOr<ProgramRef> Compiler::Compile(const CompileRequest& request,
                                             const Planned& planned) {
  if (planned.program) return planned.program;
  const codegen::NodeBody& body = planned.node.body;
  const codegen::Program& made = planned.node.made;
  const auto operands = static_cast<uint32_t>(request.in.size() + request.out.size());
  FORGE_ASSIGN_OR_RETURN(codegen::StepPlan plan, codegen::PlanStep(body, operands, made));
  VulkanProgram::Parts parts;
  parts.kernel = made.kernel;
  parts.scalars = std::move(plan.scalars);
  parts.scratch_bytes = plan.scratch_bytes;
  parts.seconds = context_->rates().Seconds(NodeOf(request));
  std::vector<LaunchedKernel> kernels;
  for (size_t i = 0; i < made.launches.size(); ++i) {
    const codegen::Launch& launch = made.launches[i];
    FORGE_ASSIGN_OR_RETURN(const SlotRef slot,
                           KernelFor(launch.kernel, static_cast<uint32_t>(launch.operands.size())));
    PlannedLaunch one;
    static_cast<codegen::LaunchPlan&>(one) = std::move(plan.launches[i]);
    one.pipeline = slot->pipeline;
    one.seconds = parts.seconds / static_cast<double>(made.launches.size());
    parts.launches.push_back(std::move(one));
    kernels.push_back({slot->kernel, launch.kernel.grid, launch.kernel.scalars});
  }
  // Absent operands would number the others anew.
  if (body.function->arguments().size() == request.in.size())
    parts.overwritable = ir::OverwritableArguments(*body.function);
  if (const auto update = ir::UpdateOf(*body.function)) {
    FORGE_ASSIGN_OR_RETURN(const ir::Dim bytes, update->written.bytes());
    parts.update = Program::Update{update->operand, static_cast<uint64_t>(bytes.max())};
  }
  parts.artifacts = [kernels = std::move(kernels), context = context_] {
    return ArtifactsOf(kernels, context->caps());
  };
  return ProgramRef(std::make_shared<VulkanProgram>(std::move(parts)));
}

// Where the host's own cores run kernels, a driver compiles them when they are dispatched, one
// after the other. Elsewhere literals are worth more: pipelines are made on all cores. What a
// search compares has its literals everywhere.
void Compiler::Share(std::span<const CompileRequest> requests,
                     std::span<absl::StatusOr<Planned>> planned) {
  if (!context_->caps().runs_on_cpu) return;
  std::vector<codegen::Kernel*> kernels;
  for (size_t i = 0; i < planned.size(); ++i)
    if (planned[i].ok() && requests[i].choice.empty())
      for (codegen::Launch& launch : planned[i]->node.made.launches)
        if (!codegen::ReadsStepValues(launch.kernel)) kernels.push_back(&launch.kernel);
  const std::lock_guard lock(sharing_mutex_);
  sharing_.Share(kernels);
}

void Compiler::WarmUpFresh() {
  std::vector<KernelCode> fresh;
  {
    const std::lock_guard lock(mutex_);
    fresh.swap(fresh_);
  }
  if (threads_ >= 2 && fresh.size() >= kFewestWarmedUp) WarmUpPipelines(context_, fresh, threads_);
}

std::vector<absl::StatusOr<ProgramRef>> Compiler::Run(std::span<const CompileRequest> requests,
                                                      CompileProgress progress) {
  std::vector<absl::StatusOr<Planned>> planned(requests.size());
  ParallelFor(requests.size(), threads_, [&](size_t i) { planned[i] = Plan(requests[i]); });
  Share(requests, planned);
  std::vector<absl::StatusOr<ProgramRef>> out(requests.size(), Aborted("cancelled"));
  std::atomic<size_t> done{0};
  std::atomic<bool> goes_on = true;
  ParallelFor(requests.size(), threads_, [&](size_t i) {
    if (!goes_on) return;
    out[i] = planned[i].ok() ? Compile(requests[i], *planned[i]) : planned[i].status();
    planned[i] = Planned{};  // kernels are large
    if (!progress(++done)) goes_on = false;
  });
  if (goes_on) WarmUpFresh();
  // A cache that cannot be written costs the next run time and this one nothing.
  pipelines_->Save().IgnoreError();
  spirv_.Save().IgnoreError();
  return out;
}

}  // namespace forge::vk
