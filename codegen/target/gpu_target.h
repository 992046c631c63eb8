// SPDX-License-Identifier: Apache-2.0
// What passes may ask of a GPU.
#pragma once
#include "codegen/kernel/caps.h"
#include "codegen/target/rates.h"
#include "codegen/target/tuned.h"
#include "ir/graph/target.h"

namespace forge::codegen {

// Answers by what schedules can generate: nothing is listed here. Thread-safe.
class GpuTarget final : public ir::Target {
 public:
  GpuTarget(std::string name, const Caps& caps, const Rates& rates,
            std::shared_ptr<const TunedChoices> tuned)
      : name_(std::move(name)), caps_(caps), rates_(rates), tuned_(std::move(tuned)) {}
  std::string_view name() const override { return name_; }
  Verdict Supports(const ir::Candidate& node) const override;
  Verdict Fuses(const ir::Function& body) const override;
  Verdict FusesAnchors(const ir::Function& body) const override;
  // Dense, and what the node's schedule would rather find made, where an operand is a constant.
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate& node) const override;
  double Seconds(const ir::Candidate& node) const override { return rates_.Seconds(node); }

 private:
  std::string name_;
  Caps caps_;
  Rates rates_;
  std::shared_ptr<const TunedChoices> tuned_;
};

}  // namespace forge::codegen
