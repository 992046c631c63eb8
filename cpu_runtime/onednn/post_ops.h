// SPDX-License-Identifier: Apache-2.0
// The element-wise ops after an anchor that oneDNN computes on the result of the anchor.
#pragma once
#include "cpu_runtime/onednn/library.h"
#include "cpu_runtime/task.h"

namespace forge::cpu {

// A chain of post-ops, limited to those that oneDNN computes as Forge defines them. Its relu, clip,
// hard-sigmoid, exp, max and min lose NaN (seen on every instruction set of oneDNN 3.2, whose
// vector max and min return the other operand), and its gelu by erf returns NaN for infinity; the
// tape computes those.
struct PostOps {
  struct Operand {
    uint32_t operand;         // index of the operand in the task
    dnnl::memory::desc desc;  // has the rank of the result
  };
  uint32_t value = 0;  // the value of the body after all post-ops
  dnnl::post_ops ops = {};
  std::vector<std::pair<int, Operand>> operands = {};  // position in `ops`
  bool empty() const { return ops.len() == 0; }
};

// Returns the longest chain of post-ops after `value`. Throws dnnl::error.
PostOps PlanPostOps(const Task& task, uint32_t value);

}  // namespace forge::cpu
