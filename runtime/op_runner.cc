// SPDX-License-Identifier: Apache-2.0
#include "runtime/op_runner.h"

namespace forge {

Verdict OpRunner::Supports(const Device& device, const ir::AnyOp& op, ir::TypeSpan in) {
  const absl::StatusOr<ir::Types> out = op.Infer(in);
  if (!out.ok()) return Verdict::No(std::string(Message(out.status())));
  return device.target().Supports({op, in, *out});
}

absl::StatusOr<std::unique_ptr<OpRunner>> OpRunner::Create(DeviceRef device, const ir::AnyOp& op,
                                                           ir::TypeSpan in,
                                                           const Executable::Options& options) {
  std::unique_ptr<OpRunner> runner(new OpRunner(device));
  ir::Function& f = runner->function_;
  ir::Values operands;
  for (const ir::Type& t : in) {
    runner->present_.push_back(static_cast<bool>(t));
    operands.push_back(t ? f.Argument(fmt::format("x{}", operands.size()), t) : ir::Value{});
  }
  const ir::Values results = f.Add(op, operands);
  FORGE_RETURN_IF_ERROR(f.status());
  for (size_t i = 0; i < results.size(); ++i) f.Return(fmt::format("y{}", i), results[i]);
  FORGE_ASSIGN_OR_RETURN(runner->executable_,
                         Executable::Build({device, f, {}, runner->programs_, {}}, options));
  return runner;
}

absl::StatusOr<std::vector<ir::HostValue>> OpRunner::Run(std::span<const ir::HostValue* const> in) {
  std::vector<const ir::HostValue*> present;
  for (size_t i = 0; i < in.size(); ++i)
    if (present_[i]) present.push_back(in[i]);
  std::vector<ir::HostValue> results;
  FORGE_RETURN_IF_ERROR(executable_->Run(present, results, nullptr));
  return results;
}

}  // namespace forge
