// SPDX-License-Identifier: Apache-2.0
// The element-wise ops after an anchor that the library computes on its result.
#pragma once
#include "cpu_runtime/onednn/library.h"
#include "cpu_runtime/task.h"

namespace forge::cpu {

// Only what the library computes as Forge defines it. Its relu, clip, hard-sigmoid, exp, max and
// min lose NaN (seen on every instruction set of 3.2, whose vector max and min return the other
// operand), and its gelu by erf makes NaN of infinity, so they are left to the tape.
struct PostOps {
  struct Operand {
    uint32_t operand;         // of the task
    dnnl::memory::desc desc;  // of the rank of the result
  };
  uint32_t value = 0;  // of the body, after all of them
  dnnl::post_ops ops = {};
  std::vector<std::pair<int, Operand>> operands = {};  // position in `ops`
  bool empty() const { return ops.len() == 0; }
};

// The longest chain from `value` on. Throws dnnl::error.
PostOps PlanPostOps(const Task& task, uint32_t value);

}  // namespace forge::cpu
