// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cpu_runtime/kernels/kernel.h"

namespace forge::cpu {

// The kernel of an op on floats, of which narrow ones are widened, followed by element-wise ops.
// kAnyLayout: it is as fast with channels last as with dense operands; otherwise it takes the
// latter alone.
template <class Op, bool kAnyLayout = false>
class FloatKernel final : public Kernel {
 public:
  explicit FloatKernel(absl::StatusOr<MadeAnchor> (*make)(const AnchorSite&)) : make_(make) {}
  bool Knows(const Task& task) const override { return IsAnchoredBy<Op>(task); }
  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->in[0]).dtype();
    if (!Has(kFloatTypes, t))
      return Verdict::No(fmt::format("{} has no kernel for {}", Op::kInfo.name, Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes(std::string(Op::kInfo.name));
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, make_);
  }

  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    return kAnyLayout ? BothLayouts(task, settings) : Kernel::Encodings(task, settings);
  }

 private:
  absl::StatusOr<MadeAnchor> (*make_)(const AnchorSite&);
};

}  // namespace forge::cpu
