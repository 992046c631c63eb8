// SPDX-License-Identifier: Apache-2.0
// The launches of a program within a step of a plan: their bindings, and the numbers that are known
// later. A backend adds the compiled kernels.
#pragma once
#include "codegen/region/schedule.h"
#include "codegen/target/node_body.h"

namespace forge::codegen {

// Bytes; of each range of scratch memory.
inline constexpr uint64_t kScratchAlignment = 256;

// A binding of a launch: an operand of the step, or a range of its scratch memory.
struct LaunchOperand {
  uint32_t step_operand = 0;
  uint64_t offset = 0;  // bytes into that operand
  uint64_t bytes = 0;   // 0: everything from `offset` on
  bool writes = false;
};

// A number: a constant, or scalar `index` of the program.
struct LaunchNumber {
  int64_t constant = 0;
  int32_t index = -1;
};

struct LaunchPlan {
  std::string name;
  std::vector<LaunchOperand> operands;
  std::vector<LaunchNumber> scalars;  // of the kernel, in order
  std::array<LaunchNumber, 3> grid;   // workgroups
};

struct StepPlan {
  std::vector<LaunchPlan> launches;
  std::vector<ir::Dim> scalars;  // of the program: each distinct number that is not a constant
  uint64_t scratch_bytes = 0;
};

// Plans the launches of a program. operands: number of step operands; scratch follows them errors:
// Internal (a launch binds an operand that does not exist)
absl::StatusOr<StepPlan> PlanStep(const NodeBody& body, uint32_t operands, const Program& made);

}  // namespace forge::codegen
