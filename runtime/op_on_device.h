// SPDX-License-Identifier: Apache-2.0
// One op on a device, run as a model would run it: as one kernel, otherwise as its decomposition.
#pragma once
#include "ir/passes/passes.h"
#include "runtime/plan/op_runner.h"
#include "runtime/session.h"

namespace forge {

// How a device runs an op at given types.
struct OpSupport {
  enum class Way {
    kKernel,  // one kernel
    kParts,   // its decomposition
    kRefused
  };
  Way way = Way::kRefused;
  std::vector<ir::Refusal> refused = {};  // for kRefused: the ops that cannot run
};

// One op, compiled for a device.
class OpOnDevice {
 public:
  // Returns how the device would run the op.
  static OpSupport Support(const Device& device, const ir::AnyOp& op, ir::TypeSpan in);
  // Compiles the op. A decomposition goes through all passes, as in a model of this op alone; of
  // the options it uses `timestamps` and `compile_only`.
  //   errors: those of inference, the passes or the device
  static absl::StatusOr<std::unique_ptr<OpOnDevice>> Create(
      DeviceRef device, const ir::AnyOp& op, ir::TypeSpan in,
      const Executable::Options& options = {});
  // Runs the op.
  //   in: one for each operand; null where it is absent
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> in);
  // The same with the operands of the last Run and without results. On a GPU nothing is copied for
  // one kernel.
  absl::Status Repeat(std::span<const ir::HostValue* const> in) {
    return kernel_ ? kernel_->Repeat(in) : Run(in).status();
  }
  const Executable& executable() const {
    return parts_ ? *parts_->executable() : kernel_->executable();
  }

 private:
  std::unique_ptr<OpRunner> kernel_;
  std::unique_ptr<Session> parts_;  // exactly one of the two is set
};

}  // namespace forge
