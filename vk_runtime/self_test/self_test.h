// SPDX-License-Identifier: Apache-2.0
// Drivers misreport and crash: features that can be wrong in silence are tried before they are
// trusted, in a process of their own.
#pragma once
#include <set>

#include "vk_runtime/device/device.h"

namespace forge::vk {

// What became of a device's self-test. Nothing passed and nothing failed where the device computes
// nothing, as one that only compiles.
struct SelfTest {
  std::set<std::string, std::less<>> passed;
  Failures failed;
  // Those that took too long: no verdict, since the machine may have been busy. The process that
  // waited does without them, and the next one tries them again.
  Failures late;
  std::optional<Rates> rates;  // what the device reaches
  bool Knows(std::string_view feature) const;
  // Every feature to do without, and why.
  Failures Faults() const;
};

// Runs small kernels for each tried feature that the device was opened with, but for the `known`
// ones, and compares what they compute with the host. Takes some compilations. Tells line by line
// what it does; what SelfTestReport::Read makes of the lines is the outcome. A lost device ends it.
//   errors: of a device that fails without any feature
absl::Status RunSelfTest(VulkanDevice& device, std::span<const std::string> known,
                         Driver::Tell tell);
bool IsTried(std::string_view feature);

// The lines of a self-test, as told and as kept in the cache folder.
struct SelfTestReport {
  SelfTest test;
  std::string trying;  // the feature that was being tried at the end of the text
  bool whole = false;  // the test came to its end

  // The first line; a new driver is tried anew, and so is an old one by new probes.
  static std::string Title(const Queries& q);
  // A text with another title says nothing.
  static SelfTestReport Read(const std::string& text, const Queries& q);
};

struct SelfTestRequest {
  size_t index = 0;      // of the device
  int64_t patience = 0;  // nanoseconds for each feature
  SelfTest known = {};   // what passed and failed before is not tried again
};
// Runs the self-test of the device of `q` in a process of its own, and adds to what is known. A
// feature that ends the process has failed, one that keeps it for too long is late, and the others
// are tried by another process. All have failed where the program for it is missing.
//   errors: Unavailable: the process ends before it tries anything
absl::StatusOr<SelfTest> TryInChild(const Queries& q, const SelfTestRequest& request);

// The verdict of this very driver's earlier run, or nothing. An absent or damaged file is none.
std::optional<SelfTest> ReadSelfTest(const Queries& q);
// Keeps a verdict in the cache folder.  errors: Internal with path and reason
absl::Status WriteSelfTest(const Queries& q, const SelfTest& test);

}  // namespace forge::vk
