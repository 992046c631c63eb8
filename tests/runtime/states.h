// SPDX-License-Identifier: Apache-2.0
// Runs of functions that store states, beside the reference.
#pragma once
#include <gtest/gtest.h>

#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"

namespace forge::testing {

// The parameter is a device.
class StatesTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    FORGE_ASSERT_OK_AND_ASSIGN(device_, OpenDevice(GetParam(), {}));
    FORGE_ASSERT_OK_AND_ASSIGN(reference_, OpenDevice("reference", {}));
  }
  ir::Variable* State(std::string name, const ir::HostValue& value) {
    return AddVariable(*m_, std::move(name), ir::Variable::Role::kState, value);
  }
  // Runs `times` on the device and the reference, which must agree, and leaves what the last run of
  // the device wrote.
  void Run(int times = 3) {
    Create();
    for (int i = 0; i < times; ++i) RunOnce(i);
  }
  void Create() {
    const auto model = std::make_shared<const Model>(std::move(m_));
    FORGE_ASSERT_OK_AND_ASSIGN(session_, Session::Create(model, device_, {}));
    FORGE_ASSERT_OK_AND_ASSIGN(wanted_, Session::Create(model, reference_));
  }
  void RunOnce(int64_t seed) {
    std::vector<NamedTensor> in;
    for (const auto& a : f_.arguments())
      in.push_back({a.name, Noise(ir::Constants(f_.type(a.value).shape()), 7 * seed + 1)});
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, session_->Run(in));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, wanted_->Run(in));
    FORGE_ASSERT_OK_AND_ASSIGN(const Comparison same, Compare(got, want));
    EXPECT_TRUE(same.within()) << "run " << seed;
  }
  // Of the steps whose label or kernel holds `part`.
  uint64_t BytesWritten(std::string_view part) const {
    uint64_t bytes = 0;
    for (const StepInfo& s : session_->executable()->steps())
      if (s.label.find(part) != std::string::npos || s.kernel.find(part) != std::string::npos)
        bytes += s.bytes_written;
    return bytes;
  }

  std::unique_ptr<ir::Module> m_ = std::make_unique<ir::Module>();
  ir::Function& f_ = *m_->AddFunction("main");
  DeviceRef device_, reference_;
  std::unique_ptr<Session> session_, wanted_;
};

}  // namespace forge::testing
