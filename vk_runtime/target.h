// SPDX-License-Identifier: Apache-2.0
// What passes may ask of a Vulkan device.
#pragma once
#include "codegen/caps.h"
#include "ir/target.h"
#include "vk_runtime/cache_file.h"
#include "vk_runtime/rates.h"

namespace forge::vk {

// Answers by what schedules can generate: nothing is listed here. Thread-safe.
class VulkanTarget final : public ir::Target {
 public:
  VulkanTarget(std::string name, const codegen::Caps& caps, const Rates& rates,
               std::shared_ptr<const TunedFile> tuned)
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
  codegen::Caps caps_;
  Rates rates_;
  std::shared_ptr<const TunedFile> tuned_;
};

}  // namespace forge::vk
