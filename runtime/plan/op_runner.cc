// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/op_runner.h"

namespace forge {

absl::Status ReturnOp(const ir::AnyOp& op, ir::TypeSpan in, ir::Function& f) {
  ir::Values operands;
  for (const ir::Type& t : in)
    operands.push_back(t ? f.Argument(fmt::format("x{}", operands.size()), t) : ir::Value{});
  const ir::Values results = f.Add(op, operands);
  FORGE_RETURN_IF_ERROR(f.status());
  for (size_t i = 0; i < results.size(); ++i) f.Return(fmt::format("y{}", i), results[i]);
  return f.status();
}

absl::StatusOr<std::unique_ptr<OpRunner>> OpRunner::Create(DeviceRef device, const ir::AnyOp& op,
                                                           ir::TypeSpan in,
                                                           const Executable::Options& options) {
  std::unique_ptr<OpRunner> runner(new OpRunner(device));
  for (const ir::Type& t : in) runner->present_.push_back(static_cast<bool>(t));
  FORGE_RETURN_IF_ERROR(ReturnOp(op, in, runner->function_));
  FORGE_ASSIGN_OR_RETURN(
      runner->executable_,
      Executable::Build({device, runner->function_, {}, runner->programs_, {}}, options));
  return runner;
}

absl::StatusOr<std::vector<ir::HostValue>> OpRunner::Run(std::span<const ir::HostValue* const> in) {
  std::vector<const ir::HostValue*> present;
  for (size_t i = 0; i < in.size(); ++i)
    if (present_[i]) present.push_back(in[i]);
  return executable_->Run(present, {}, nullptr);
}

absl::Status OpRunner::Repeat(std::span<const ir::HostValue* const> in) {
  return on_host_ ? Run(in).status() : executable_->RunInPlace(nullptr);
}

}  // namespace forge
