// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/prepare.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "ir/ops/spatial/pool.h"
#include "runtime/backends.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/resolve.h"
#include "runtime/session.h"

namespace forge::fuzz {
namespace {

// What a run may cost: a fuzzer wants many small ones.
constexpr double kMaxFlops = 1e6, kMaxBytes = 1e6;
// What is lowered: few bytes may be many nodes, as ONNX's Det is, which take 4 ms each with a
// sanitizer, 50 us without.
constexpr size_t kMaxLoweredNodes = 300;

// Takes pools and whatever has no decomposition, and fuses.
class PrimitiveTarget final : public ir::Target {
 public:
  std::string_view name() const override { return "primitives"; }
  Verdict Supports(const ir::Candidate& node) const override {
    if (node.op.def().decompose == nullptr || node.op.Is<ir::Pool>())
      return Verdict::Yes("primitive");
    return Verdict::No("it decomposes");
  }
  Verdict Fuses(const ir::Function& body) const override {
    if (body.nodes().size() <= kMaxNodes) return Verdict::Yes("fused");
    return Verdict::No("too many nodes");
  }
  bool MultipliesBytes() const override { return true; }
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate&) const override { return {}; }
  double Seconds(const ir::Candidate&) const override { return 0; }

 private:
  static constexpr size_t kMaxNodes = 8;
};

// A model may be refused, but never for a mistake of Forge's own.
bool Accepted(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kInternal) {
    std::fprintf(stderr, "internal error: %s\n", std::string(Message(status)).c_str());
    std::abort();
  }
  return status.ok();
}

ir::Bindings SmallestExtents(const ir::Module& module) {
  ir::Bindings values;
  for (const ir::SymbolRef& s : module.symbols()) {
    const int64_t least = std::max<int64_t>(s->min, 1);
    const int64_t over = least % s->divisor;
    if (over == 0 || least <= s->max - (s->divisor - over))
      values[s] = over == 0 ? least : least + s->divisor - over;
  }
  return values;
}

double NumberOf(const absl::StatusOr<ir::Dim>& dim) {
  if (!dim.ok()) return HUGE_VAL;
  const absl::StatusOr<int64_t> n = dim->Evaluate({});
  return n.ok() ? static_cast<double>(*n) : HUGE_VAL;
}

// Whether all values of a bound function are few bytes, and all its nodes little work.
bool IsSmall(const ir::Function& f) {
  double bytes = 0, flops = 0;
  for (uint32_t v = 0; v < f.value_count(); ++v)
    if (f.type(v).is_tensor()) bytes += NumberOf(f.type(v).bytes());
  for (const ir::Node& node : f.nodes()) flops += NumberOf(node.op.Cost(f.TypesOf(node.in)).flops);
  return bytes <= kMaxBytes && flops <= kMaxFlops;
}

struct Size {
  bool accepted, small;
};

Size LowerFor(const ir::Module& module, const ir::Target& target, const LowerOptions& options) {
  const absl::StatusOr<Lowered> lowered = Lower(module, target, options);
  if (!Accepted(lowered.status())) return {false, false};
  const absl::StatusOr<BoundFunctions> bound =
      BindLowered(*lowered->functions[0], target, SmallestExtents(*lowered->module), options);
  if (!Accepted(bound.status())) return {false, false};
  return {true, IsSmall(*lowered->load) && IsSmall(*bound->load) && IsSmall(*bound->main)};
}

void RunOnZeros(std::unique_ptr<ir::Module> module, const DeviceRef& device,
                const SessionOptions& options) {
  const ir::Bindings extents = SmallestExtents(*module);
  const auto session =
      Session::Create(std::make_shared<const Model>(std::move(module)), device, options);
  if (!Accepted(session.status())) return;
  std::vector<NamedTensor> inputs;
  for (const Session::Port& port : (*session)->inputs()) {
    std::vector<int64_t> shape;
    for (const ir::Dim& d : port.type.shape()) {
      // The extents are of the module, the port's type of its copy: symbols agree by name.
      const absl::StatusOr<int64_t> n = d.Evaluate(extents);
      if (!n.ok()) return;
      shape.push_back(*n);
    }
    absl::StatusOr<ir::HostValue> zeros = ir::HostValue::Zeros(port.type.dtype(), shape);
    if (!zeros.ok()) return;
    inputs.push_back({port.name, *std::move(zeros)});
  }
  Accepted((*session)->Run(inputs).status());
}

}  // namespace

void Prepare(std::unique_ptr<ir::Module> module) {
  static const DeviceRef device = *OpenDevice("reference", {});
  FORGE_CHECK(ir::Verify(*module).ok());
  size_t nodes = 0;
  for (const auto& f : module->functions()) nodes += f->nodes().size();
  if (module->functions().empty() || nodes > kMaxLoweredNodes) return;
  LowerOptions lower{.verify = true};
  lower.functions = {module->Find("main") ? "main" : module->functions()[0]->name()};
  // A function whose types depend on values of a run is lowered in parts, as it runs; a run of a
  // loop may take any time.
  const absl::StatusOr<bool> waits = WaitsForValues(*module, lower.functions[0], /*freeze=*/true);
  if (!Accepted(waits.status())) return;
  if (*waits) {
    const auto session = Session::Create(std::make_shared<const Model>(std::move(module)), device,
                                         {.functions = lower.functions});
    Accepted(session.status());
    return;
  }
  // The reference evaluates an op by its parts, which may be more work than the op says.
  const Size parts = LowerFor(*module, PrimitiveTarget(), lower);
  const Size whole = LowerFor(*module, device->target(), lower);
  if (whole.accepted && whole.small && parts.small)
    RunOnZeros(std::move(module), device, {.functions = lower.functions});
}

}  // namespace forge::fuzz
