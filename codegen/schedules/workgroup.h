// SPDX-License-Identifier: Apache-2.0
// What the invocations of a workgroup compute together.
#pragma once
#include "codegen/schedules/emission.h"

namespace forge::codegen {

// Combines one value of each invocation into one that all see, in a fixed order. The workgroup is
// one-dimensional and a power of two; control flow around the call is uniform.
class WorkgroupTree {
 public:
  WorkgroupTree(Emission& m, Type element);
  Val Combine(Val mine, absl::FunctionRef<Val(Val, Val)> combine);
  static int64_t SharedBytes(int64_t invocations, Type element) {
    return invocations * BitWidth(element.elem) / 8;
  }

 private:
  Emission& m_;
  uint16_t view_;
};

}  // namespace forge::codegen
