// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/device/node_compiler.h"

#include "base/bytes.h"
#include "ir/analysis/in_place.h"
#include "ir/ops/compiler/fused.h"

namespace forge::cuda {
namespace {

constexpr std::string_view kLibraryChoice = "cublaslt";
// Smaller products take a few microseconds either way.
constexpr double kManyFlops = 1 << 20;
// A product of fewer terms is computed sooner by a kernel that fuses what follows than by the
// library and a second kernel; halves, for which the library is many times as fast, from fewer
// terms on. Source: docs/measurements/h100.md.
constexpr int64_t kManyTerms = 512, kManyTermsOfHalves = 64;

bool Pays(const ProductOfBody& p) {
  const bool half = p.form.dtype == DType::kF16 || p.form.dtype == DType::kBF16;
  return p.form.flops() >= kManyFlops &&
         (p.rest == nullptr || p.form.k >= (half ? kManyTermsOfHalves : kManyTerms));
}

ir::Candidate NodeOf(const CompileRequest& r) { return {*r.op, r.in, r.out}; }

// "matmul: f32[2, 3], f32[3, 4] -> f32[2, 4]"
std::string DescriptionOf(const CompileRequest& request) {
  const auto list = [](ir::TypeSpan types) {
    std::string out;
    for (const ir::Type& t : types) out += (out.empty() ? "" : ", ") + (t ? t.ToText() : "-");
    return out;
  };
  return fmt::format("{}: {} -> {}", request.name, list(request.in), list(request.out));
}

// What the launches of a product and of its rest bind: the operands of the step, then its scratch,
// which holds the product, if a rest reads it there, the library's workspace, and the scratch of
// the rest.
struct ProductPlaces {
  uint32_t in, out;  // operands and results of the step
  uint64_t product_bytes, workspace_at, rest_at;

  codegen::LaunchOperand Scratch(uint64_t at, uint64_t bytes, bool writes) const {
    return {.step_operand = in + out, .offset = at, .bytes = bytes, .writes = writes};
  }
  // Of the rest, whose operands are those of the step, the product, the results and its scratch.
  codegen::LaunchOperand OfRest(codegen::LaunchOperand o) const {
    if (o.step_operand == in)
      return Scratch(o.offset, o.bytes == 0 ? product_bytes - o.offset : o.bytes, o.writes);
    if (o.step_operand == in + 1 + out) return Scratch(rest_at + o.offset, o.bytes, o.writes);
    if (o.step_operand > in) --o.step_operand;
    return o;
  }
};

std::vector<Artifact> ArtifactsOf(const codegen::Kernel& kernel, const std::string& what,
                                  KernelStore& store) {
  std::vector<Artifact> all;
  const auto add = [&](const char* extension, std::string_view bytes) {
    all.push_back({kernel.name + extension, {bytes.begin(), bytes.end()}});
  };
  add(".kernel", codegen::ToText(kernel));
  add(".cu", codegen::PrintCuda(kernel, store.caps(), what).text);
  if (const auto image = store.Image(kernel, what); image.ok())
    add(IsCubin(*image) ? ".cubin" : ".ptx", image->image);
  return all;
}

}  // namespace

absl::Status NodeCompiler::AddKernels(codegen::PlannedNode& planned, codegen::StepPlan steps,
                                      const CompileRequest& request, CudaProgram::Parts& parts,
                                      std::vector<Described>& described) const {
  const std::string what = DescriptionOf(request);
  for (size_t i = 0; i < planned.made.launches.size(); ++i) {
    PlannedLaunch one;
    static_cast<codegen::LaunchPlan&>(one) = std::move(steps.launches[i]);
    codegen::Kernel& kernel = planned.made.launches[i].kernel;
    FORGE_ASSIGN_OR_RETURN(one.loaded, kernels_->Get(kernel, what));
    parts.launches.push_back(std::move(one));
    described.push_back({std::move(kernel), what});
  }
  return absl::OkStatus();
}

void NodeCompiler::AddArtifacts(std::vector<Described> described, CudaProgram::Parts& parts) const {
  parts.artifacts = [kernels = std::move(described), store = kernels_] {
    std::vector<Artifact> all;
    for (const auto& [kernel, what] : kernels)
      for (Artifact& a : ArtifactsOf(kernel, what, *store)) all.push_back(std::move(a));
    return all;
  };
}

absl::StatusOr<ProgramRef> NodeCompiler::CompileKernels(const CompileRequest& request,
                                                        codegen::NodeBody own) const {
  const ir::Candidate node = NodeOf(request);
  FORGE_ASSIGN_OR_RETURN(
      codegen::PlannedNode planned,
      planner_.Plan(node, std::move(own),
                    {.choice = request.choice, .once = request.once, .approximate = request.fast}));
  const auto operands = static_cast<uint32_t>(request.in.size() + request.out.size());
  FORGE_ASSIGN_OR_RETURN(codegen::StepPlan steps,
                         codegen::PlanStep(planned.body, operands, planned.made));
  CudaProgram::Parts parts;
  parts.kernel = planned.made.kernel;
  parts.scalars = std::move(steps.scalars);
  parts.scratch_bytes = steps.scratch_bytes;
  parts.seconds = context_->rates().Seconds(node);
  std::vector<Described> described;
  FORGE_RETURN_IF_ERROR(AddKernels(planned, std::move(steps), request, parts, described));
  AddArtifacts(std::move(described), parts);
  const ir::Function& body = *planned.body.function;
  // Absent operands would number the others anew.
  if (body.arguments().size() == request.in.size())
    parts.overwritable = ir::OverwritableArguments(body);
  if (const auto update = ir::UpdateOf(body)) {
    FORGE_ASSIGN_OR_RETURN(const ir::Dim bytes, update->written.bytes());
    parts.update = Program::Update{update->operand, static_cast<uint64_t>(bytes.max())};
  }
  return ProgramRef(std::make_shared<CudaProgram>(std::move(parts)));
}

absl::StatusOr<ProgramRef> NodeCompiler::CompileProduct(const CompileRequest& request,
                                                        const codegen::Region& region,
                                                        ProductOfBody product) const {
  PlannedLaunch first;
  {
    const Context::Current current(*context_);
    FORGE_ASSIGN_OR_RETURN(first.product, Product::Make(library_, product.form));
  }
  const bool whole = product.rest == nullptr;
  const uint64_t product_bytes = whole ? 0 : product.form.result_bytes();
  const uint64_t workspace_bytes = first.product->workspace_bytes();
  ProductPlaces at{.in = static_cast<uint32_t>(request.in.size()),
                   .out = static_cast<uint32_t>(request.out.size()),
                   .product_bytes = product_bytes,
                   .workspace_at = AlignUp(product_bytes, codegen::kScratchAlignment),
                   .rest_at = 0};
  at.rest_at = AlignUp(at.workspace_at + workspace_bytes, codegen::kScratchAlignment);
  first.name = kLibraryChoice;
  const auto argument = [](size_t n) {
    return codegen::LaunchOperand{.step_operand = static_cast<uint32_t>(n)};
  };
  first.operands = {argument(product.a), argument(product.b),
                    whole ? codegen::LaunchOperand{.step_operand = at.in, .writes = true}
                          : at.Scratch(0, product_bytes, true)};
  if (product.form.bias) first.operands.push_back(argument(product.bias));
  if (workspace_bytes > 0)
    first.operands.push_back(at.Scratch(at.workspace_at, workspace_bytes, true));
  for (codegen::LaunchNumber& n : first.grid) n.constant = 1;
  CudaProgram::Parts parts;
  parts.kernel = kLibraryChoice;
  parts.seconds = context_->rates().Seconds(NodeOf(request));
  parts.scratch_bytes = at.rest_at;
  parts.launches.push_back(std::move(first));
  std::vector<Described> described;
  if (!whole) {
    ir::Types in(request.in.begin(), request.in.end());
    in.push_back(product.rest->type(product.rest->arguments().back().value));
    const ir::AnyOp op = ir::Fused{.body = product.rest.get()};
    FORGE_ASSIGN_OR_RETURN(
        codegen::PlannedNode planned,
        planner_.Plan({op, in, request.out}, {.once = request.once, .approximate = request.fast}));
    FORGE_ASSIGN_OR_RETURN(codegen::StepPlan steps,
                           codegen::PlanStep(planned.body, at.in + 1 + at.out, planned.made));
    for (codegen::LaunchPlan& launch : steps.launches)
      for (codegen::LaunchOperand& o : launch.operands) o = at.OfRest(o);
    parts.kernel += " + " + planned.made.kernel;
    parts.scalars = steps.scalars;
    parts.scratch_bytes += steps.scratch_bytes;
    FORGE_RETURN_IF_ERROR(AddKernels(planned, std::move(steps), request, parts, described));
  }
  AddArtifacts(std::move(described), parts);
  if (!whole && region.body().arguments().size() == request.in.size())
    parts.overwritable = ir::OverwritableArguments(region.body());
  return ProgramRef(std::make_shared<CudaProgram>(std::move(parts)));
}

bool NodeCompiler::WantsLibrary(const CompileRequest& request, const codegen::Region& region,
                                const ProductOfBody& product) const {
  if (!request.choice.empty()) return request.choice == kLibraryChoice;
  if (!tuned_->empty())
    if (const auto key = codegen::TuningKey(region); key.ok())
      if (const auto preferred = tuned_->Find(*key)) return *preferred == kLibraryChoice;
  return Pays(product);
}

absl::StatusOr<ProgramRef> NodeCompiler::Compile(const CompileRequest& request) const {
  FORGE_ASSIGN_OR_RETURN(codegen::NodeBody body,
                         codegen::BodyOf(NodeOf(request), context_->caps()));
  std::optional<ProductOfBody> product =
      library_ != nullptr ? ProductIn(*body.region) : std::nullopt;
  if (product) product->form.rounds = request.fast;
  if (!product || !WantsLibrary(request, *body.region, *product))
    return CompileKernels(request, std::move(body));
  absl::StatusOr<ProgramRef> program = CompileProduct(request, *body.region, *std::move(product));
  // What the library has no algorithm for, a kernel computes, unless the library was asked for.
  if (!absl::IsUnimplemented(program.status()) || !request.choice.empty()) return program;
  return CompileKernels(request, std::move(body));
}

std::vector<std::string> NodeCompiler::Choices(const CompileRequest& request, size_t most) const {
  std::vector<std::string> all = planner_.Choices(NodeOf(request), most);
  if (library_ == nullptr || most == 0) return all;
  const absl::StatusOr<codegen::NodeBody> body = codegen::BodyOf(NodeOf(request), context_->caps());
  const auto product = body.ok() ? ProductIn(*body->region) : std::nullopt;
  if (!product) return all;
  const bool first = WantsLibrary(request, *body->region, *product);
  if (all.size() >= most) all.pop_back();
  all.insert(first ? all.begin() : all.end(), std::string(kLibraryChoice));
  return all;
}

absl::Status NodeCompiler::Prefer(const CompileRequest& request) const {
  if (request.choice != kLibraryChoice) return planner_.Prefer(NodeOf(request), request.choice);
  FORGE_ASSIGN_OR_RETURN(const codegen::NodeBody body,
                         codegen::BodyOf(NodeOf(request), context_->caps()));
  if (library_ == nullptr || !ProductIn(*body.region))
    return InvalidArgument("{}: there is no choice '{}'", request.name, request.choice);
  FORGE_ASSIGN_OR_RETURN(const uint64_t key, codegen::TuningKey(*body.region));
  // A file that cannot be written costs later runs time and this one nothing.
  tuned_->Put(key, request.choice).IgnoreError();
  return absl::OkStatus();
}

}  // namespace forge::cuda
