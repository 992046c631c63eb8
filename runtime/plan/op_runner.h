// SPDX-License-Identifier: Apache-2.0
// One op by itself on a device: what conformance tests, forge-parity ops and forge-bench ops run.
#pragma once
#include "ir/cases/case_inputs.h"
#include "runtime/plan/executable.h"

namespace forge {

// Makes `f` return what the op makes of arguments of the types given: x0, x1 ... to y0, y1 ...
//   errors: what inference says
absl::Status ReturnOp(const ir::AnyOp& op, ir::TypeSpan in, ir::Function& f);

// As one kernel.
class OpRunner {
 public:
  // errors: what inference or the device says
  static absl::StatusOr<std::unique_ptr<OpRunner>> Create(DeviceRef device, const ir::AnyOp& op,
                                                          ir::TypeSpan in,
                                                          const Executable::Options& options = {});
  // `in`: one for each operand, null where absent.
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> in);
  const Executable& executable() const { return *executable_; }

 private:
  explicit OpRunner(DeviceRef device) : programs_(std::move(device)), function_("op") {}
  ProgramCache programs_;
  ir::Function function_;
  std::vector<bool> present_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace forge
