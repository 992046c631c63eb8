// SPDX-License-Identifier: Apache-2.0
// Measures the rates of a device with three small kernels.
#pragma once
#include "codegen/target/rates.h"

namespace forge::vk {

using codegen::Rates;
// The name of the measurement in the report of a self-test.
inline constexpr std::string_view kRatesProbe = "rates";

class VulkanDevice;

// Measures the peak rate of multiply-adds in registers, the copy rate of data larger than the
// caches, and the capacity of the caches. Takes some milliseconds.
//   errors: as Device::Submit and Device::Map
absl::StatusOr<Rates> MeasureRates(VulkanDevice& device);

// Returns the capacity of the caches in bytes: the largest set size that is read clearly faster
// than the last; 0: there is none.
//   seconds[i]: time to read the same number of bytes as repeated sets of kSmallestSet times the
//   i-th power of kSetStep bytes
inline constexpr int64_t kSmallestSet = int64_t{1} << 19, kLargestSet = int64_t{1} << 27,
                         kSetStep = 4;
int64_t CacheBytesOf(std::span<const double> seconds);
// True for 0 and for every value that CacheBytesOf can return.
bool CanBeCache(int64_t bytes);

}  // namespace forge::vk
