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

constexpr int kMostPostOps = 32;  // DNNL_MAX_POST_OPS of 3.2

// Returns the longest chain of at most `most` post-ops after `value`. Throws dnnl::error.
PostOps PlanPostOps(const Task& task, uint32_t value, int most = kMostPostOps);

// Is it there, and none of the library's plain loops, which only its own tests should meet?
template <class Description>
bool IsFast(const Description& d) {
  if (!d.get(true)) return false;
  const std::string_view name = d.impl_info_str();
  return name.find("ref") == name.npos && name.find("any") == name.npos;
}

// What `describe` makes of the longest chain after `value` that brings no plain loops; `post_ops`
// becomes that chain. Most kernels of the library take only some broadcasts of an operand.
template <class Describe>
auto DescribeFast(const Task& task, uint32_t value, PostOps& post_ops, Describe describe) {
  auto d = describe(post_ops);
  while (!post_ops.empty() && !IsFast(d)) {
    const int before_last = post_ops.operands.empty() ? 0 : post_ops.operands.back().first;
    post_ops = PlanPostOps(task, value, before_last);
    d = describe(post_ops);
  }
  return d;
}

}  // namespace forge::cpu
