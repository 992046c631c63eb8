// SPDX-License-Identifier: Apache-2.0
// One op by itself as a model would run it: as a kernel, else as its parts.
#pragma once
#include "ir/passes/passes.h"
#include "runtime/plan/op_runner.h"
#include "runtime/session.h"

namespace forge {

// How a device runs an op at given types.
struct OpSupport {
  enum class Way {
    kKernel,  // as it is
    kParts,   // as its decomposition
    kRefused
  };
  Way way = Way::kRefused;
  std::vector<ir::Refusal> refused = {};  // kRefused: the op, or those of its parts that cannot run
};

class OpOnDevice {
 public:
  static OpSupport Support(const Device& device, const ir::AnyOp& op, ir::TypeSpan in);
  // Parts go through all passes, as a model of this op alone does; of the options they take
  // timestamps and compile_only.
  //   errors: what inference, the passes or the device say
  static absl::StatusOr<std::unique_ptr<OpOnDevice>> Create(
      DeviceRef device, const ir::AnyOp& op, ir::TypeSpan in,
      const Executable::Options& options = {});
  // `in`: one for each operand, null where absent.
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> in);
  const Executable& executable() const {
    return parts_ ? *parts_->executable() : kernel_->executable();
  }

 private:
  std::unique_ptr<OpRunner> kernel_;
  std::unique_ptr<Session> parts_;  // one of both
};

}  // namespace forge
