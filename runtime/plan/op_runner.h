// SPDX-License-Identifier: Apache-2.0
// Runs one op on a device, for conformance tests, forge-parity ops and forge-bench ops.
#pragma once
#include "ir/cases/case_inputs.h"
#include "runtime/plan/executable.h"

namespace forge {

// Builds a function `f` that applies the op to arguments x0, x1 ... of the given types and returns
// y0, y1 ...
//   errors: those of inference
absl::Status ReturnOp(const ir::AnyOp& op, ir::TypeSpan in, ir::Function& f);

// One op, compiled as one kernel.
class OpRunner {
 public:
  // Compiles the op.
  //   errors: those of inference or the device
  static absl::StatusOr<std::unique_ptr<OpRunner>> Create(DeviceRef device, const ir::AnyOp& op,
                                                          ir::TypeSpan in,
                                                          const Executable::Options& options = {});
  // Runs the op.
  //   in: one for each operand; null where it is absent
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> in);
  // The same with the operands of the last Run and without results. On a GPU nothing is copied.
  absl::Status Repeat(std::span<const ir::HostValue* const> in);
  const Executable& executable() const { return *executable_; }

 private:
  explicit OpRunner(DeviceRef device)
      : on_host_(device->info().is_cpu), programs_(std::move(device)), function_("op") {}
  const bool on_host_;  // software devices lend the memory of the host
  ProgramCache programs_;
  ir::Function function_;
  std::vector<bool> present_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace forge
