// SPDX-License-Identifier: Apache-2.0
// How fast a device is, by three small kernels.
#pragma once
#include "ir/target.h"
#include "vk_runtime/vulkan.h"

namespace forge::vk {

class VulkanDevice;

// A rough idea of a device's speed: for cutting submissions and comparing choices, not for show.
struct Rates {
  double flops, bytes;  // per second, rather too low: a piece must not become too long
  // What is read again from caches, not from memory, up to so many: see CacheBytesOf.
  int64_t cache_bytes = 0;
  static Rates Of(VkPhysicalDeviceType type);  // before anything is measured
  // What most kernels reach at the least, where this is what the device does at most.
  Rates OfKernels() const { return {.flops = flops / 4, .bytes = bytes / 2}; }
  int64_t FlopsPerByte() const;  // to the nearest power of two, 1 or more
  // Seconds of a node with bound types; 0 where an extent is not a number yet.
  double Seconds(const ir::Candidate& node) const;
};

// The name that a self-test knows it by.
inline constexpr std::string_view kRatesProbe = "rates";

// From how long it takes to read the same number of bytes as sets of each size, again and again:
// `seconds[i]` for sets of kSmallestSet times the i-th power of kSetStep. The largest that is read
// clearly faster than the last: smaller ones could only seem slower. 0: there is none.
inline constexpr int64_t kSmallestSet = int64_t{1} << 19, kLargestSet = int64_t{1} << 27,
                         kSetStep = 4;
int64_t CacheBytesOf(std::span<const double> seconds);
// 0, or what CacheBytesOf may find.
bool CanBeCache(int64_t bytes);

// What the device reaches at most: multiply-adds in registers, and a copy of what no cache holds;
// and how much caches hold. Takes some milliseconds.  errors: as Device::Submit and Device::Map
absl::StatusOr<Rates> MeasureRates(VulkanDevice& device);

}  // namespace forge::vk
