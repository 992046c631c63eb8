// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/reference_device.h"

#include <cstring>

#include "base/platform.h"
#include "ir/analysis/in_place.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/compiler/fused.h"
#include "runtime/device/host_device.h"

namespace forge {
namespace {

class EvaluatorProgram final : public HostProgram {
 public:
  explicit EvaluatorProgram(const CompileRequest& r)
      : op_(*r.op), in_(r.in.begin(), r.in.end()), out_(r.out.begin(), r.out.end()) {
    overwritable_ = ir::OverwritableOperands(op_, in_, out_);
  }
  std::string_view kernel() const override { return "evaluate"; }
  std::span<const ir::Overwrite> overwritable() const override { return overwritable_; }

  absl::Status Run(const HostArguments& a) const override {
    std::vector<ir::HostValue> operands(in_.size());
    std::vector<const ir::HostValue*> pointers(in_.size(), nullptr);
    for (size_t i = 0; i < in_.size(); ++i) {
      if (!in_[i]) continue;
      // Evaluators only read; the bytes outlive the call.
      FORGE_ASSIGN_OR_RETURN(operands[i],
                             ir::HostValue::Of(in_[i].dtype(), ir::Constants(in_[i].shape()),
                                               Bytes(a.operands[i], nullptr)));
      pointers[i] = &operands[i];
    }
    FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> results, ir::Evaluate(op_, pointers));
    for (size_t k = 0; k < out_.size(); ++k) {
      const std::span<uint8_t> to = a.operands[in_.size() + k];
      if (results[k].bytes().size() != to.size())
        return Internal("{} produced {} bytes instead of {}", op_.name(), results[k].bytes().size(),
                        to.size());
      if (!to.empty()) std::memcpy(to.data(), results[k].bytes().data(), to.size());
    }
    return absl::OkStatus();
  }

 private:
  ir::AnyOp op_;
  ir::Types in_, out_;
  std::vector<ir::Overwrite> overwritable_;
};

class ReferenceDevice final : public HostDevice, public ir::Target {
 public:
  explicit ReferenceDevice(DeviceInfo info) : HostDevice(std::move(info)) {}
  const ir::Target& target() const override { return *this; }

  std::string_view name() const override { return "reference"; }
  Verdict Supports(const ir::Candidate&) const override { return Verdict::Yes("evaluate"); }
  Verdict Fuses(const ir::Function&) const override {
    return Verdict::No("the reference does not fuse");
  }
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate&) const override { return {}; }
  double Seconds(const ir::Candidate&) const override { return 0; }

  std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                  CompileProgress progress) override {
    std::vector<absl::StatusOr<ProgramRef>> programs;
    for (const CompileRequest& r : requests) {
      programs.push_back(std::make_shared<EvaluatorProgram>(r));
      if (!progress(programs.size())) break;
    }
    programs.resize(requests.size(), Aborted("cancelled"));
    return programs;
  }
};

class ReferenceDriverImpl final : public Driver {
 public:
  bool survives_fork() const override { return true; }
  std::vector<DeviceInfo> List() override {
    DeviceInfo info;
    info.id = "reference:0";
    info.name = "reference evaluators";
    info.backend = "reference";
    info.driver = "forge";
    info.api = "f64 loops";
    info.is_cpu = true;
    return {info};
  }
  absl::StatusOr<DeviceRef> Open(size_t, const DeviceOptions&) override {
    return DeviceRef(std::make_shared<ReferenceDevice>(List()[0]));
  }
};

}  // namespace

Driver* ReferenceDriver() {
  static ReferenceDriverImpl driver;
  return &driver;
}

}  // namespace forge
