// SPDX-License-Identifier: Apache-2.0
// Self-test of drivers: features that a driver can silently get wrong are tested before their first
// use, in a separate process.
#pragma once
#include <set>

#include "vk_runtime/device/device.h"

namespace forge::vk {

// The verdict of a self-test. `passed` and `failed` are empty for devices that cannot execute, such
// as those that only compile.
struct SelfTest {
  std::set<std::string, std::less<>> passed;
  Failures failed;
  // Features that exceeded their time. There is no verdict, since the machine may have been busy:
  // the waiting process does not use them, and the next process tests them again.
  Failures late;
  std::optional<Rates> rates;  // measured rates
  bool Knows(std::string_view feature) const;
  // All features that must not be used, with the reason.
  Failures Faults() const;
};

// Runs the probes of every feature that the device was opened with, except those in `known`, and
// compares the results with the host. Compiles several kernels. Reports each result as a line for
// SelfTestReport::Read. A lost device ends the test.
//   errors: those of a device that fails without any feature
absl::Status RunSelfTest(VulkanDevice& device, std::span<const std::string> known,
                         Driver::Tell tell);
bool IsTried(std::string_view feature);

// The report of a self-test, as text lines.
struct SelfTestReport {
  SelfTest test;
  std::string trying;  // the feature under test at the end of the text
  bool whole = false;  // the test finished

  // The first line. It names the driver and the version of the probes, so a change of either
  // repeats the test.
  static std::string Title(const Queries& q);
  // Parses a report. A text with another title yields an empty report.
  static SelfTestReport Read(const std::string& text, const Queries& q);
};

struct SelfTestRequest {
  size_t index = 0;      // index of the device
  int64_t patience = 0;  // time limit for each feature, nanoseconds
  SelfTest known = {};   // verdicts that are not tested again
};
// Runs the self-test of a device in a separate process and adds to the known verdicts. A feature
// that crashes the process fails, one that exceeds its time is late, and another process tests the
// rest. All features fail where the self-test program is missing.
//   errors: Unavailable (the process ends before its first test)
absl::StatusOr<SelfTest> TryInChild(const Queries& q, const SelfTestRequest& request);

// Reads the verdict that an earlier run of this driver stored; nullopt when the file is absent or
// damaged.
std::optional<SelfTest> ReadSelfTest(const Queries& q);
// Stores a verdict in the cache folder.
//   errors: Internal with path and reason
absl::Status WriteSelfTest(const Queries& q, const SelfTest& test);

}  // namespace forge::vk
