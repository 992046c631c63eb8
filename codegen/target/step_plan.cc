// SPDX-License-Identifier: Apache-2.0
#include "codegen/target/step_plan.h"

#include <algorithm>

#include "base/bytes.h"

namespace forge::codegen {
namespace {

// What binding `binding` of a kernel is, given what the whole operand is.
LaunchOperand Bound(LaunchOperand o, const Kernel& kernel, int binding) {
  for (const View& v : kernel.views) {
    const int part = binding - v.operand;
    if (v.space != Space::kGlobal || part < 0 || part >= v.parts) continue;
    o.writes |= v.writes;
    if (v.parts == 1) continue;
    const auto bytes = static_cast<uint64_t>(PartBytes(v));
    o.offset = bytes * static_cast<uint64_t>(part);
    o.bytes = part + 1 < v.parts ? bytes : 0;
  }
  return o;
}

LaunchNumber NumberOf(const ir::Dim& d, std::vector<ir::Dim>& scalars) {
  if (d.is_constant()) return {.constant = d.constant()};
  const auto at = std::find(scalars.begin(), scalars.end(), d);
  const auto index = static_cast<int32_t>(at - scalars.begin());
  if (at == scalars.end()) scalars.push_back(d);
  return {.index = index};
}

}  // namespace

absl::StatusOr<StepPlan> PlanStep(const NodeBody& body, uint32_t operands, const Program& made) {
  StepPlan plan;
  std::vector<LaunchOperand> bound;  // of the region, then its scratch
  for (const uint32_t o : body.step_operand) bound.push_back({.step_operand = o});
  for (const int64_t scratch : made.scratch_bytes) {
    const auto bytes = static_cast<uint64_t>(scratch);
    bound.push_back({.step_operand = operands, .offset = plan.scratch_bytes, .bytes = bytes});
    plan.scratch_bytes += AlignUp(bytes, kScratchAlignment);
  }
  for (const Launch& launch : made.launches) {
    LaunchPlan p;
    p.name = launch.kernel.name;
    for (size_t i = 0; i < launch.operands.size(); ++i) {
      const auto at = static_cast<size_t>(launch.operands[i]);
      if (at >= bound.size()) return Internal("a launch binds operand {} of {}", at, bound.size());
      p.operands.push_back(Bound(bound[at], launch.kernel, static_cast<int>(i)));
    }
    for (const ir::Dim& d : launch.kernel.scalars) p.scalars.push_back(NumberOf(d, plan.scalars));
    for (size_t axis = 0; axis < p.grid.size(); ++axis)
      p.grid[axis] = NumberOf(launch.kernel.grid[axis], plan.scalars);
    plan.launches.push_back(std::move(p));
  }
  return plan;
}

}  // namespace forge::codegen
