// SPDX-License-Identifier: Apache-2.0
#include "codegen/target/gpu_target.h"

#include <algorithm>

#include "codegen/schedules/matmul/gemm.h"
#include "codegen/schedules/tuning.h"
#include "codegen/schedules/window/window.h"
#include "codegen/target/node_body.h"
#include "ir/ops/compiler/relayout.h"

namespace forge::codegen {
namespace {

// A region gains nothing and compiles slowly where one of its parts has more ops than this.
constexpr size_t kMostOps = 32;

// The ops of the largest part of a body, where parts have no value in common but arguments and
// literals.
size_t LargestPart(const ir::Function& body) {
  const auto& nodes = body.nodes();
  std::vector<size_t> part(nodes.size()), ops(nodes.size(), 0);
  const auto part_of = [&](size_t i) {
    while (part[i] != i) i = part[i];
    return i;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    part[i] = i;
    for (uint32_t v : nodes[i].in) {
      if (v == ir::kAbsent || body.origin(v).kind != ir::Function::Origin::kNode) continue;
      const size_t from = body.origin(v).index;
      if (!nodes[from].in.empty()) part[part_of(from)] = i;
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) ++ops[part_of(i)];
  return ops.empty() ? 0 : *std::ranges::max_element(ops);
}

// How the region will be compiled, as far as it is known without: what a search found for its
// default.
absl::StatusOr<Choice> ChoiceFor(const Region& r, const TunedChoices& tuned) {
  FORGE_ASSIGN_OR_RETURN(Choice choice, DefaultChoice(r));
  if (choice.schedule->prepares == nullptr || tuned.empty()) return choice;
  return tuned.Preferred(r).value_or(choice);
}

Verdict No(const absl::Status& s) { return Verdict::No(std::string(Message(s))); }

// Does the device compute in what these values are made of?
Verdict CheckTypes(ir::TypeSpan types, const Caps& caps) {
  for (const ir::Type& t : types) {
    if (!t) continue;
    if (!t.is_tensor()) return Verdict::No(fmt::format("{} is not a tensor", t.ToText()));
    if (t.dtype() == DType::kString) return Verdict::No("strings stay on the host");
    if (t.dtype() == DType::kF64 && !caps.f64)
      return Verdict::No("f64 needs the feature fp64, which this device lacks");
    if (t.encoding())
      return Verdict::No(fmt::format("no kernel reads the encoding {}", t.encoding()->name()));
  }
  return Verdict::Yes();
}

}  // namespace

Verdict GpuTarget::Supports(const ir::Candidate& node) const {
  if (node.op.def().info.host) return Verdict::No("it runs on the host");
  if (node.op.is_view()) return Verdict::Yes("view");
  for (ir::TypeSpan types : {node.in, node.out})
    if (Verdict v = CheckTypes(types, caps_); !v) return v;
  const absl::StatusOr<NodeBody> body = BodyOf(node, caps_);
  return body.ok() ? CanGenerate(*body->region) : No(body.status());
}

Verdict GpuTarget::Fuses(const ir::Function& body) const {
  if (LargestPart(body) > kMostOps) return Verdict::No(fmt::format("more than {} ops", kMostOps));
  const auto operands = static_cast<int64_t>(body.arguments().size() + body.results().size());
  if (operands > caps_.max_operands)
    return Verdict::No(
        fmt::format("{} operands; a kernel binds at most {}", operands, caps_.max_operands));
  const absl::StatusOr<Region> region = Region::Of(body, caps_);
  if (!region.ok()) return No(region.status());
  if (region->norm() != nullptr)
    if (Verdict v = NormPays(*region); !v) return v;
  if (region->reduction() != nullptr)
    if (Verdict v = ReductionPays(*region); !v) return v;
  if (ComputesForEachTap(*region)) return Verdict::No("it would be computed for each tap");
  return CanGenerate(*region);
}

Verdict GpuTarget::FusesAnchors(const ir::Function& body) const { return Fuses(body); }

// Made at every run it takes as long as another launch that reads and writes it, which is what a
// relayout is said to take: for an operand that is no constant both are the same, and the first is
// taken.
std::vector<ir::EncodingChoice> GpuTarget::Encodings(const ir::Candidate& node) const {
  const absl::StatusOr<NodeBody> body = BodyOf(node, caps_);
  if (!body.ok()) return {};
  const absl::StatusOr<Choice> choice = ChoiceFor(*body->region, *tuned_);
  if (!choice.ok()) return {};
  const std::optional<Prepared> prepared = PreparedFor(*body->region, *choice);
  if (!prepared) return {};
  ir::EncodingChoice dense{.in = std::vector<ir::EncodingRef>(node.in.size()),
                           .out = std::vector<ir::EncodingRef>(node.out.size())};
  ir::EncodingChoice made = dense;
  const size_t operand = body->step_operand[static_cast<size_t>(prepared->argument)];
  made.in[operand] = prepared->encoding;
  const ir::Types from{node.in[operand]}, to{node.in[operand].With(prepared->encoding)};
  dense.seconds = rates_.Seconds({ir::Relayout{.to = to[0]}, from, to});
  return {dense, made};
}

}  // namespace forge::codegen
