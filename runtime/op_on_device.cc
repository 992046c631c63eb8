// SPDX-License-Identifier: Apache-2.0
#include "runtime/op_on_device.h"

namespace forge {

OpSupport OpOnDevice::Support(const Device& device, const ir::AnyOp& op, ir::TypeSpan in) {
  auto refused = [&](const absl::Status& why) {
    ir::Refusal r{.op = std::string(op.name()), .in = {in.begin(), in.end()}};
    r.why = Message(why);
    return OpSupport{.refused = {std::move(r)}};
  };
  const absl::StatusOr<ir::Types> out = op.Infer(in);
  if (!out.ok()) return refused(out.status());
  if (device.target().Supports({op, in, *out})) return {.way = OpSupport::Way::kKernel};
  ir::Module module;
  ir::Function& f = *module.AddFunction("main");
  if (const absl::Status s = ReturnOp(op, in, f); !s.ok()) return refused(s);
  ir::Function legal("legal", &module);
  OpSupport support;
  const absl::Status s = ir::Legalise(f, legal, device.target(), &support.refused);
  if (s.ok()) return {.way = OpSupport::Way::kParts};
  return support.refused.empty() ? refused(s) : support;
}

absl::StatusOr<std::unique_ptr<OpOnDevice>> OpOnDevice::Create(DeviceRef device,
                                                               const ir::AnyOp& op, ir::TypeSpan in,
                                                               const Executable::Options& options) {
  auto runner = std::make_unique<OpOnDevice>();
  FORGE_ASSIGN_OR_RETURN(const ir::Types out, op.Infer(in));
  if (device->target().Supports({op, in, out})) {
    FORGE_ASSIGN_OR_RETURN(runner->kernel_, OpRunner::Create(std::move(device), op, in, options));
    return runner;
  }
  auto module = std::make_unique<ir::Module>();
  FORGE_RETURN_IF_ERROR(ReturnOp(op, in, *module->AddFunction("main")));
  SessionOptions session;
  session.debug.timestamps = options.timestamps;
  session.debug.compile_only = options.compile_only;
  FORGE_ASSIGN_OR_RETURN(runner->parts_,
                         Session::Create(std::make_shared<const Model>(std::move(module)),
                                         std::move(device), session));
  FORGE_RETURN_IF_ERROR(runner->parts_->Bind({}));
  return runner;
}

absl::StatusOr<std::vector<ir::HostValue>> OpOnDevice::Run(
    std::span<const ir::HostValue* const> in) {
  if (kernel_) return kernel_->Run(in);
  std::vector<NamedTensor> inputs;
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i]) inputs.push_back({fmt::format("x{}", i), *in[i]});
  FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> named, parts_->Run(inputs));
  std::vector<ir::HostValue> results;
  for (NamedTensor& t : named) results.push_back(std::move(t.value));
  return results;
}

}  // namespace forge
