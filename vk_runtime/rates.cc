// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/rates.h"

#include <algorithm>

namespace forge::vk {
namespace {

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

}  // namespace forge::vk
