// SPDX-License-Identifier: Apache-2.0
// How fast a device is, by two small kernels.
#pragma once
#include "vk_runtime/device.h"

namespace forge::vk {

// The name that a self-test knows it by.
inline constexpr std::string_view kRatesProbe = "rates";

// What the device reaches at most: multiply-adds in registers, and a copy of what no cache holds.
// Takes some milliseconds.  errors: as Device::Submit and Device::Map
absl::StatusOr<Rates> MeasureRates(VulkanDevice& device);

}  // namespace forge::vk
