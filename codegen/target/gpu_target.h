// SPDX-License-Identifier: Apache-2.0
// The target of GPUs: the answers of code generation to the passes.
#pragma once
#include "codegen/kernel/caps.h"
#include "codegen/target/rates.h"
#include "codegen/target/tuned.h"
#include "ir/graph/target.h"

namespace forge::codegen {

// Derives its answers from the schedules; there is no list of supported ops. Thread-safe.
class GpuTarget final : public ir::Target {
 public:
  GpuTarget(std::string name, const Caps& caps, const Rates& rates,
            std::shared_ptr<const TunedChoices> tuned)
      : name_(std::move(name)), caps_(caps), rates_(rates), tuned_(std::move(tuned)) {}
  std::string_view name() const override { return name_; }
  Verdict Supports(const ir::Candidate& node) const override;
  Verdict Fuses(const ir::Function& body) const override;
  Verdict FusesAnchors(const ir::Function& body) const override;
  bool MultipliesBytes() const override {
    return caps_.int_dot && caps_.int_dot_mixed_accelerated && caps_.int_dot_signed_accelerated;
  }
  // Returns dense, and the encoding of constant operands that the schedule of the node prefers.
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate& node) const override;
  double Seconds(const ir::Candidate& node) const override { return rates_.Seconds(node); }

 private:
  std::string name_;
  Caps caps_;
  Rates rates_;
  std::shared_ptr<const TunedChoices> tuned_;
};

}  // namespace forge::codegen
