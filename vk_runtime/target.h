// SPDX-License-Identifier: Apache-2.0
// What passes may ask of a Vulkan device.
#pragma once
#include "codegen/caps.h"
#include "vk_runtime/rates.h"

namespace forge::vk {

// Answers by what schedules can generate: nothing is listed here. Thread-safe.
class VulkanTarget final : public ir::Target {
 public:
  VulkanTarget(std::string name, const codegen::Caps& caps, const Rates& rates)
      : name_(std::move(name)), caps_(caps), rates_(rates) {}
  std::string_view name() const override { return name_; }
  Verdict Supports(const ir::Candidate& node) const override;
  Verdict Fuses(const ir::Function& body) const override;
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate&) const override { return {}; }
  double Seconds(const ir::Candidate& node) const override { return rates_.Seconds(node); }

 private:
  Verdict CanCompile(const ir::Function& body) const;
  std::string name_;
  codegen::Caps caps_;
  Rates rates_;
};

}  // namespace forge::vk
