// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/target.h"

namespace forge::vk {

Verdict VulkanTarget::Supports(const ir::Candidate&) const { return Verdict::No("no kernel"); }
Verdict VulkanTarget::Fuses(const ir::Function&) const { return Verdict::No("no kernel"); }
std::vector<ir::EncodingChoice> VulkanTarget::Encodings(const ir::Candidate&) const { return {}; }
double VulkanTarget::Seconds(const ir::Candidate&) const { return 0; }

}  // namespace forge::vk
