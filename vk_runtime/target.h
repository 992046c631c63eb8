// SPDX-License-Identifier: Apache-2.0
// What passes may ask of a Vulkan device.
#pragma once
#include "codegen/caps.h"
#include "ir/target.h"

namespace forge::vk {

class VulkanTarget final : public ir::Target {
 public:
  VulkanTarget(std::string name, const codegen::Caps& caps) : name_(std::move(name)), caps_(caps) {}
  std::string_view name() const override { return name_; }
  Verdict Supports(const ir::Candidate& node) const override;
  Verdict Fuses(const ir::Function& body) const override;
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate& node) const override;
  double Seconds(const ir::Candidate& node) const override;

 private:
  std::string name_;
  codegen::Caps caps_;
};

}  // namespace forge::vk
