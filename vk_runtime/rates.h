// SPDX-License-Identifier: Apache-2.0
// A rough idea of a device's speed: for cutting submissions and comparing choices, not for show.
#pragma once
#include "ir/target.h"
#include "vk_runtime/vulkan.h"

namespace forge::vk {

struct Rates {
  double flops, bytes;  // per second, rather too low: a piece must not become too long
  static Rates Of(VkPhysicalDeviceType type);
  // Seconds of a node with bound types; 0 where an extent is not a number yet.
  double Seconds(const ir::Candidate& node) const;
};

}  // namespace forge::vk
