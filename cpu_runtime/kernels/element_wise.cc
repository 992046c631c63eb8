// SPDX-License-Identifier: Apache-2.0
// Regions of element-wise and movement ops alone: one tape.
#include "cpu_runtime/kernels/kernel.h"

namespace forge::cpu {
namespace {

// What is made of so many operands has as many boxes, and compiling one looks at every operand.
constexpr size_t kMaxOperands = 512;

class ElementWise final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return task.anchor() == nullptr; }

  Verdict Takes(const Task& task) const override {
    if (task.operands() > kMaxOperands)
      return Verdict::No(
          fmt::format("{} operands, a tape takes at most {}", task.operands(), kMaxOperands));
    for (const ir::Node& node : task.body().nodes())
      if (Verdict v = TapeTakes(task.body(), node); !v) return v;
    return Verdict::Yes("tape");
  }

  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    return BothLayouts(task, settings);
  }

  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeTapeProgram(task, settings);
  }
};

}  // namespace

const Kernel& ElementWiseKernel() {
  static const ElementWise kKernel;
  return kKernel;
}

}  // namespace forge::cpu
