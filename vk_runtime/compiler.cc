// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/compiler.h"

#include <thread>

#include "base/hash.h"
#include "codegen/tuning.h"
#include "ir/in_place.h"
#include "vk_runtime/fixed_launch.h"
#include "vk_runtime/rehearsal.h"

namespace forge::vk {
namespace {

constexpr size_t kFewestRehearsed = 4;  // fewer gain less than logical devices cost

ir::Candidate NodeOf(const CompileRequest& r) { return {*r.op, r.in, r.out}; }

// Turns the launches of one region into those of a step.
class ProgramBuilder {
 public:
  ProgramBuilder(const NodeBody& body, uint32_t node_operands, const codegen::Program& made) {
    parts_.kernel = made.kernel;
    for (const uint32_t o : body.step_operand) operands_.push_back({.step_operand = o});
    for (const int64_t scratch : made.scratch_bytes) {
      const auto bytes = static_cast<uint64_t>(scratch);
      operands_.push_back(
          {.step_operand = node_operands, .offset = parts_.scratch_bytes, .bytes = bytes});
      parts_.scratch_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
  }

  absl::Status Add(const codegen::Launch& launch, PipelineRef pipeline) {
    PlannedLaunch planned;
    planned.pipeline = std::move(pipeline);
    planned.name = launch.kernel.name;
    for (size_t i = 0; i < launch.operands.size(); ++i) {
      const auto at = static_cast<size_t>(launch.operands[i]);
      if (at >= operands_.size())
        return Internal("a launch binds operand {} of {}", at, operands_.size());
      planned.operands.push_back(operands_[at]);
      LaunchOperand& o = planned.operands.back();
      for (const codegen::View& v : launch.kernel.views) {
        const int part = static_cast<int>(i) - v.operand;
        if (v.space != codegen::Space::kGlobal || part < 0 || part >= v.parts) continue;
        o.writes |= v.writes;
        if (v.parts == 1) continue;
        const auto bytes = static_cast<uint64_t>(PartBytes(v));
        o.offset = bytes * static_cast<uint64_t>(part);
        o.bytes = part + 1 < v.parts ? bytes : 0;
      }
    }
    for (const ir::Dim& d : launch.kernel.scalars) planned.scalars.push_back(NumberOf(d));
    for (int a = 0; a < 3; ++a) planned.grid[a] = NumberOf(launch.kernel.grid[a]);
    parts_.launches.push_back(std::move(planned));
    return absl::OkStatus();
  }

  VulkanProgram::Parts Finish(double seconds) {
    parts_.seconds = seconds;
    for (PlannedLaunch& l : parts_.launches)
      l.seconds = seconds / static_cast<double>(parts_.launches.size());
    return std::move(parts_);
  }

 private:
  LaunchNumber NumberOf(const ir::Dim& d) {
    if (d.is_constant()) return {.constant = d.constant()};
    const auto at = std::find(parts_.scalars.begin(), parts_.scalars.end(), d);
    const auto index = static_cast<int32_t>(at - parts_.scalars.begin());
    if (at == parts_.scalars.end()) parts_.scalars.push_back(d);
    return {.index = index};
  }

  std::vector<LaunchOperand> operands_;  // of the region, then its scratch
  VulkanProgram::Parts parts_;
};

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

void ParallelFor(size_t n, int threads, absl::FunctionRef<void(size_t)> body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) body(i);
  };
  const size_t helpers = std::min(n, static_cast<size_t>(std::max(threads, 1)));
  std::vector<std::thread> pool;
  for (size_t i = 1; i < helpers; ++i) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

absl::StatusOr<KernelCode> Compiler::CodeOf(const codegen::Kernel& kernel, uint32_t operands,
                                            uint64_t hash) {
  if (auto words = spirv_.Find(hash)) return KernelCode::With(kernel, operands, std::move(*words));
  absl::StatusOr<KernelCode> code = KernelCode::Of(kernel, operands, context_->caps());
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

absl::StatusOr<codegen::Program> Compiler::Generate(const codegen::Region& region,
                                                    const CompileRequest& request) const {
  if (!request.choice.empty()) {
    FORGE_ASSIGN_OR_RETURN(const codegen::Choice chosen,
                           codegen::ParseChoice(region, request.choice));
    return codegen::Generate(region, chosen);
  }
  // With an anchor the difference may be one in the order of work, not of bandwidth.
  if (request.once && region.anchor() == nullptr) {
    FORGE_ASSIGN_OR_RETURN(const codegen::Choice simplest, codegen::SimplestChoice(region));
    return codegen::Generate(region, simplest);
  }
  FORGE_ASSIGN_OR_RETURN(codegen::Program by_default, codegen::Generate(region));
  const std::optional<codegen::Choice> preferred = tuned_->Preferred(region, by_default);
  return preferred ? codegen::Generate(region, *preferred) : std::move(by_default);
}

std::vector<std::string> Compiler::Choices(const CompileRequest& request, size_t most) const {
  std::vector<std::string> words;
  if (FindHandWritten(*request.op, request.in, context_->caps())) return words;
  const absl::StatusOr<NodeBody> body = BodyOf(NodeOf(request), context_->caps());
  if (!body.ok()) return words;
  for (const codegen::Choice& c : codegen::ChoicesFor(*body->region, most))
    words.push_back(c.ToText());
  return words;
}

absl::Status Compiler::Prefer(const CompileRequest& request) {
  FORGE_ASSIGN_OR_RETURN(const NodeBody body, BodyOf(NodeOf(request), context_->caps()));
  FORGE_RETURN_IF_ERROR(codegen::ParseChoice(*body.region, request.choice).status());
  FORGE_ASSIGN_OR_RETURN(const codegen::Program by_default, codegen::Generate(*body.region));
  // A file that cannot be written costs later runs time and this one nothing.
  tuned_->Put(codegen::TuningKey(by_default), request.choice).IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<Compiler::Planned> Compiler::Plan(const CompileRequest& request) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  Planned planned;
  if (const auto shader = FindHandWritten(*request.op, request.in, context_->caps())) {
    FORGE_ASSIGN_OR_RETURN(planned.program, MakeProgram(*shader, *pipelines_));
    return planned;
  }
  FORGE_ASSIGN_OR_RETURN(planned.body, BodyOf(NodeOf(request), context_->caps()));
  FORGE_ASSIGN_OR_RETURN(planned.made, Generate(*planned.body.region, request));
  return planned;
}

absl::StatusOr<ProgramRef> Compiler::Compile(const CompileRequest& request,
                                             const Planned& planned) {
  if (planned.program) return planned.program;
  const NodeBody& body = planned.body;
  const codegen::Program& made = planned.made;
  ProgramBuilder builder(body, static_cast<uint32_t>(request.in.size() + request.out.size()), made);
  std::vector<LaunchedKernel> kernels;
  for (const codegen::Launch& launch : made.launches) {
    FORGE_ASSIGN_OR_RETURN(const SlotRef slot,
                           KernelFor(launch.kernel, static_cast<uint32_t>(launch.operands.size())));
    FORGE_RETURN_IF_ERROR(builder.Add(launch, slot->pipeline));
    kernels.push_back({slot->kernel, launch.kernel.grid, launch.kernel.scalars});
  }
  VulkanProgram::Parts parts = builder.Finish(context_->rates().Seconds(NodeOf(request)));
  // Absent operands would number the others anew.
  if (body.function->arguments().size() == request.in.size())
    parts.overwritable = ir::OverwritableArguments(*body.function);
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
      for (codegen::Launch& launch : planned[i]->made.launches) kernels.push_back(&launch.kernel);
  const std::lock_guard lock(sharing_mutex_);
  sharing_.Share(kernels);
}

void Compiler::RehearseFresh() {
  std::vector<KernelCode> fresh;
  {
    const std::lock_guard lock(mutex_);
    fresh.swap(fresh_);
  }
  if (threads_ >= 2 && fresh.size() >= kFewestRehearsed) Rehearse(context_, fresh, threads_);
}

std::vector<absl::StatusOr<ProgramRef>> Compiler::Run(std::span<const CompileRequest> requests,
                                                      absl::FunctionRef<void(size_t)> progress) {
  std::vector<absl::StatusOr<Planned>> planned(requests.size());
  ParallelFor(requests.size(), threads_, [&](size_t i) { planned[i] = Plan(requests[i]); });
  Share(requests, planned);
  std::vector<absl::StatusOr<ProgramRef>> out(requests.size(), Internal("not compiled"));
  std::atomic<size_t> done{0};
  ParallelFor(requests.size(), threads_, [&](size_t i) {
    out[i] = planned[i].ok() ? Compile(requests[i], *planned[i]) : planned[i].status();
    planned[i] = Planned{};  // kernels are large
    progress(++done);
  });
  RehearseFresh();
  // A cache that cannot be written costs the next run time and this one nothing.
  pipelines_->Save().IgnoreError();
  spirv_.Save().IgnoreError();
  return out;
}

}  // namespace forge::vk
