// SPDX-License-Identifier: Apache-2.0
// Drivers misreport: features that can be wrong in silence are tried before they are trusted.
#pragma once
#include "vk_runtime/device.h"

namespace forge::vk {

// What became of a device's self-test.
struct SelfTest {
  Failures failed;   // feature -> what it did instead
  bool ran = false;  // false: the device computes nothing, so nothing is known
};

// Runs small kernels for each tried feature that the device was opened with and compares what they
// compute with the host. Takes some compilations.
// Whatever goes wrong is a failure of the feature being tried.
SelfTest RunSelfTest(VulkanDevice& device);
bool IsTried(std::string_view feature);

// The verdict of this very driver's earlier run, or nothing. An absent or damaged file is none.
std::optional<SelfTest> ReadSelfTest(const Queries& q);
// Keeps a verdict in the cache folder.  errors: Internal with path and reason
absl::Status WriteSelfTest(const Queries& q, const SelfTest& test);

}  // namespace forge::vk
