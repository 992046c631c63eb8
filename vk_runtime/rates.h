// SPDX-License-Identifier: Apache-2.0
// How fast a device is, by two small kernels.
#pragma once
#include "ir/target.h"
#include "vk_runtime/vulkan.h"

namespace forge::vk {

class VulkanDevice;

// A rough idea of a device's speed: for cutting submissions and comparing choices, not for show.
struct Rates {
  double flops, bytes;  // per second, rather too low: a piece must not become too long
  static Rates Of(VkPhysicalDeviceType type);  // before anything is measured
  // What most kernels reach at the least, where this is what the device does at most.
  Rates OfKernels() const { return {.flops = flops / 4, .bytes = bytes / 2}; }
  // Seconds of a node with bound types; 0 where an extent is not a number yet.
  double Seconds(const ir::Candidate& node) const;
};

// The name that a self-test knows it by.
inline constexpr std::string_view kRatesProbe = "rates";

// What the device reaches at most: multiply-adds in registers, and a copy of what no cache holds.
// Takes some milliseconds.  errors: as Device::Submit and Device::Map
absl::StatusOr<Rates> MeasureRates(VulkanDevice& device);

}  // namespace forge::vk
