// SPDX-License-Identifier: Apache-2.0
#include "tools/page/fused_ops.h"

#include <algorithm>

#include "ir/ops/compiler/fused.h"

namespace forge::tools {

std::string OpsOf(const ir::Node& node) {
  const auto* fused = node.op.As<ir::Fused>();
  if (fused == nullptr || fused->body == nullptr) return std::string(node.op.name());
  constexpr size_t kMost = 6;
  std::vector<std::string> parts;
  std::vector<int> times;
  for (const ir::Node& n : fused->body->nodes()) {
    if (n.in.empty()) continue;
    const std::string op = OpsOf(n);
    if (parts.empty() || parts.back() != op) {
      parts.push_back(op);
      times.push_back(0);
    }
    ++times.back();
  }
  if (parts.empty()) return std::string(node.op.name());
  std::string out;
  for (size_t i = 0; i < std::min(parts.size(), kMost); ++i)
    out += (i ? " + " : "") + (times[i] > 1 ? fmt::format("{} {}", times[i], parts[i]) : parts[i]);
  if (parts.size() > kMost) out += fmt::format(" + {} more", parts.size() - kMost);
  return out;
}

}  // namespace forge::tools
