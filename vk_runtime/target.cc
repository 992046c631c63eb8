// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/target.h"

#include "codegen/schedules/window.h"
#include "vk_runtime/node_body.h"

namespace forge::vk {
namespace {

// A region of more ops than this gains nothing and compiles slowly.
constexpr size_t kMostOps = 32;

Verdict No(const absl::Status& s) { return Verdict::No(std::string(Message(s))); }

// Does the device compute in what these values are made of?
Verdict CheckTypes(ir::TypeSpan types, const codegen::Caps& caps) {
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

double BytesOf(ir::TypeSpan types) {
  double sum = 0;
  for (const ir::Type& t : types) {
    if (!t) continue;
    const absl::StatusOr<ir::Dim> bytes = t.bytes();
    if (bytes.ok() && bytes->is_constant()) sum += static_cast<double>(bytes->constant());
  }
  return sum;
}

double FlopsOf(const ir::Candidate& node) {
  const ir::OpDef& def = node.op.def();
  if (def.cost == nullptr) return 0;
  const ir::Dim flops = def.cost(def, node.op.self(), node.in).flops;
  return flops.is_constant() ? static_cast<double>(flops.constant()) : 0;
}

}  // namespace

Rates Rates::Of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return {.flops = 500e9, .bytes = 100e9};
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return {.flops = 5e9, .bytes = 2e9};
    default:
      return {.flops = 50e9, .bytes = 10e9};
  }
}

double Rates::Seconds(const ir::Candidate& node) const {
  return std::max(FlopsOf(node) / flops, (BytesOf(node.in) + BytesOf(node.out)) / bytes);
}

Verdict VulkanTarget::Supports(const ir::Candidate& node) const {
  if (node.op.def().info.host) return Verdict::No("it runs on the host");
  for (ir::TypeSpan types : {node.in, node.out})
    if (Verdict v = CheckTypes(types, caps_); !v) return v;
  const absl::StatusOr<NodeBody> body = BodyOf(node, caps_);
  return body.ok() ? codegen::CanGenerate(*body->region) : No(body.status());
}

Verdict VulkanTarget::Fuses(const ir::Function& body) const {
  if (body.nodes().size() > kMostOps) return Verdict::No(fmt::format("more than {} ops", kMostOps));
  const auto operands = static_cast<int64_t>(body.arguments().size() + body.results().size());
  if (operands > caps_.max_operands)
    return Verdict::No(
        fmt::format("{} operands; a kernel binds at most {}", operands, caps_.max_operands));
  const absl::StatusOr<codegen::Region> region = codegen::Region::Of(body, caps_);
  if (!region.ok()) return No(region.status());
  if (codegen::ComputesForEachTap(*region)) return Verdict::No("it would be computed for each tap");
  return codegen::CanGenerate(*region);
}

}  // namespace forge::vk
