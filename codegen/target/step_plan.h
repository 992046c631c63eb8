// SPDX-License-Identifier: Apache-2.0
// The launches of a program as a step of a plan runs them: what they bind, and the numbers that
// become known later. A back end adds the compiled kernels.
#pragma once
#include "codegen/region/schedule.h"
#include "codegen/target/node_body.h"

namespace forge::codegen {

// Of each part of a step's scratch: bytes.
inline constexpr uint64_t kScratchAlignment = 256;

// What binding i of a launch is: an operand of the step, or a part of its scratch.
struct LaunchOperand {
  uint32_t step_operand = 0;
  uint64_t offset = 0;  // bytes into that operand
  uint64_t bytes = 0;   // 0: all that is behind `offset`
  bool writes = false;
};

// A number known when the program is made, or scalar `index` of the program.
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
  std::vector<ir::Dim> scalars;  // of the program: each number that is not known yet, once
  uint64_t scratch_bytes = 0;
};

// The plan of what was made of `body`, whose node has `operands` and then scratch.
//   errors: Internal (a launch binds what there is not)
absl::StatusOr<StepPlan> PlanStep(const NodeBody& body, uint32_t operands, const Program& made);

}  // namespace forge::codegen
