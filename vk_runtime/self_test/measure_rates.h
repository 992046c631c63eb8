// SPDX-License-Identifier: Apache-2.0
// How fast a device is, by three small kernels.
#pragma once
#include "codegen/target/rates.h"

namespace forge::vk {

using codegen::Rates;
// The name that a self-test knows their measurement by.
inline constexpr std::string_view kRatesProbe = "rates";

class VulkanDevice;

// What the device reaches at most: multiply-adds in registers, and a copy of what no cache holds;
// and how much caches hold. Takes some milliseconds.  errors: as Device::Submit and Device::Map
absl::StatusOr<Rates> MeasureRates(VulkanDevice& device);

// From how long it takes to read the same number of bytes as sets of each size, again and again:
// `seconds[i]` for sets of kSmallestSet times the i-th power of kSetStep. The largest that is read
// clearly faster than the last: smaller ones could only seem slower. 0: there is none.
inline constexpr int64_t kSmallestSet = int64_t{1} << 19, kLargestSet = int64_t{1} << 27,
                         kSetStep = 4;
int64_t CacheBytesOf(std::span<const double> seconds);
// 0, or what CacheBytesOf may find.
bool CanBeCache(int64_t bytes);

}  // namespace forge::vk
