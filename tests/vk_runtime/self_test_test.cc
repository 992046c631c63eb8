// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/self_test/self_test.h"

#include <unistd.h>

#include <algorithm>

#include "base/platform.h"
#include "tests/support/fault_injection.h"
#include "tests/support/temp_folder.h"
#include "tests/vk_runtime/vulkan_test.h"
#include "vk_runtime/self_test/measure_rates.h"

namespace forge::vk {
namespace {

constexpr int64_t kSecond = 1'000'000'000;  // nanoseconds

class SelfTestTest : public VulkanRunTest {
 protected:
  bool Has(std::string_view feature) const {
    const std::vector<Feature>& list = device_->info().features;
    return std::any_of(list.begin(), list.end(),
                       [&](const Feature& f) { return f.present && f.name == feature; });
  }
};
using SlowSelfTestTest = SelfTestTest;

// What the lines of a self-test of `device` say.
SelfTestReport Report(VulkanDevice& device, std::span<const std::string> known = {}) {
  std::string text;
  const absl::Status status =
      RunSelfTest(device, known, [&](std::string_view line) { text += std::string(line) + "\n"; });
  EXPECT_TRUE(status.ok()) << Message(status);
  return SelfTestReport::Read(text, device.context()->queries());
}

TEST_F(SelfTestTest, PassesOnADeviceThatComputes) {
  const SelfTestReport report = Report(*device_);
  EXPECT_TRUE(report.whole);
  ASSERT_TRUE(report.test.rates);
  // Between a phone of long ago and the largest card.
  EXPECT_GT(report.test.rates->flops, 1e8);
  EXPECT_LT(report.test.rates->flops, 1e16);
  EXPECT_GT(report.test.rates->bytes, 1e7);
  EXPECT_LT(report.test.rates->bytes, 1e14);
  EXPECT_TRUE(CanBeCache(report.test.rates->cache_bytes)) << report.test.rates->cache_bytes;
  for (const Feature& f : device_->info().features)
    EXPECT_EQ(report.test.Knows(f.name), f.present && IsTried(f.name)) << f.name;
  for (const auto& [feature, what] : report.test.failed) ADD_FAILURE() << feature << ": " << what;
}

TEST_F(SelfTestTest, LeavesOutWhatIsKnown) {
  const std::string known[] = {"int64"};
  EXPECT_FALSE(Report(*device_, known).test.Knows("int64"));
}

TEST_F(SelfTestTest, TriesInAProcessOfItsOwn) {
  const auto child = TryInChild(device_->context()->queries(), {0, 60 * kSecond});
  ASSERT_OK(child.status());
  EXPECT_EQ(child->Faults(), Failures{});
  EXPECT_TRUE(child->rates);
}

TEST_F(SlowSelfTestTest, EndsADriverThatHangs) {
  if (!Has("int64")) GTEST_SKIP() << "the device has no int64 to hang on";
  const ScopedEnvironments faults(testing::FaultInjection(FORGE_BINARY_DIR, "int64:hang"));
  const auto child = TryInChild(device_->context()->queries(), {0, 10 * kSecond});
  ASSERT_OK(child.status());
  EXPECT_EQ(child->failed, Failures{});
  EXPECT_EQ(child->late, (Failures{{"int64", "silent for 10 s"}}));
  EXPECT_TRUE(child->Knows("storage16"));
}

// What takes long is all the features together, so none of them is to blame: 11 s, of which the
// longest pause is 4 s under a sanitizer.
TEST_F(SlowSelfTestTest, WaitsForADriverThatIsSlow) {
  const ScopedEnvironments faults(testing::FaultInjection(FORGE_BINARY_DIR, "slow"));
  const int64_t began = NowNanoseconds(), patience = 8 * kSecond;
  const auto child = TryInChild(device_->context()->queries(), {0, patience});
  ASSERT_OK(child.status());
  EXPECT_EQ(child->Faults(), Failures{});
  EXPECT_GT(NowNanoseconds() - began, patience);
}

TEST_F(SelfTestTest, TriesAgainWhatWasLate) {
  if (!Has("int64")) GTEST_SKIP() << "the device has no int64 to be late with";
  const TempFolder folder;
  const ScopedEnvironment cache("XDG_CACHE_HOME", folder.path().string());
  const Queries& q = device_->context()->queries();
  SelfTest late = *TryInChild(q, {0, 60 * kSecond});
  late.passed.erase("int64");
  late.late["int64"] = "silent for 30 s";
  ASSERT_OK(WriteSelfTest(q, late));
  const auto note = [](const DeviceInfo& info) {
    for (const Feature& f : info.features)
      if (f.name == "int64") return f.note;
    return std::string();
  };
  const char* off =
      "self-test not finished: silent for 30 s; off, and the next process tries again";
  EXPECT_EQ(note(VulkanDriver().List().at(0)), off);
  {
    // Who hides it need not wait for it.
    const ScopedEnvironment hide("FORGE_VK_DISABLE", "int64");
    ASSERT_OK(VulkanDriver().Open(0, {.threads = 1}).status());
    EXPECT_EQ(ReadSelfTest(q)->late, late.late);
  }
  const auto opened = VulkanDriver().Open(0, {.threads = 1});
  ASSERT_OK(opened.status());
  EXPECT_EQ(note((*opened)->info()), "self-test passed");
  EXPECT_EQ(ReadSelfTest(q)->late, Failures{});
}

TEST_F(SelfTestTest, MeasuresRatesAgainThatWereLate) {
  const TempFolder folder;
  const ScopedEnvironment cache("XDG_CACHE_HOME", folder.path().string());
  const Queries& q = device_->context()->queries();
  SelfTest late = *TryInChild(q, {0, 60 * kSecond});
  late.rates.reset();
  late.late[std::string(kRatesProbe)] = "the device is not done after 10 s";
  ASSERT_OK(WriteSelfTest(q, late));
  ASSERT_OK(VulkanDriver().Open(0, {.threads = 1}).status());
  const auto read = ReadSelfTest(q);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->rates);
  EXPECT_EQ(read->late, Failures{});
}

TEST_F(SelfTestTest, ReadsHowFarATestCame) {
  const Queries& q = device_->context()->queries();
  const std::string title = SelfTestReport::Title(q) + "\n";
  const SelfTestReport cut =
      SelfTestReport::Read(title + "try a\npassed a\ntry b\nfailed b: no: never\ntry c\n", q);
  EXPECT_EQ(SelfTestReport::Read(title + "late a: at 5\nend\n", q).test.late,
            (Failures{{"a", "at 5"}}));
  EXPECT_EQ(SelfTestReport::Read(title + "try a\nlate a: at 5\n", q).trying, "");
  EXPECT_FALSE(cut.whole);
  EXPECT_EQ(cut.trying, "c");
  EXPECT_EQ(cut.test.passed.count("a"), 1u);
  EXPECT_EQ(cut.test.failed, (Failures{{"b", "no: never"}}));
  EXPECT_TRUE(SelfTestReport::Read(title + "end\n", q).whole);
  EXPECT_FALSE(SelfTestReport::Read("another\npassed a\nend\n", q).whole);
  for (const char* odd : {"", "\n", " \n", "try\n", "failed\n", "failed a\n", "passed", "end"})
    EXPECT_FALSE(SelfTestReport::Read(title + odd, q).whole) << odd;
  for (const char* odd : {"", "1e9", "1e9 ", "1e9 1e9", "1e9 1e9 ", "x 1e9 0", "1e9 -1 0",
                          "nan 1e9 0", "1e9 inf 0", "1e99 1e9 0", "1e9 1e9 -1", "1e9 1e9 1",
                          "1e9 1e9 1000000", "1e9 1e9 1e6", "1e9 1e9 1099511627776", "1e9 1e9 0 0"})
    EXPECT_FALSE(SelfTestReport::Read(fmt::format("{}rates {}\nend\n", title, odd), q).test.rates)
        << odd;
}

TEST_F(SelfTestTest, HidesWhatFailed) {
  const Queries& q = device_->context()->queries();
  const Granted granted = Grant(q, {}, {{"subgroup_shuffle", "it lost a lane"}});
  EXPECT_FALSE(granted.caps.subgroup_shuffle);
  for (const Feature& f : granted.list) EXPECT_TRUE(f.name != "subgroup_shuffle" || !f.present);
}

TEST_F(SelfTestTest, HidesWhatNeedsWhatFailed) {
  const Granted granted =
      Grant(device_->context()->queries(), {}, {{"memory_model", "a store was not seen"}});
  EXPECT_FALSE(granted.caps.memory_model || granted.caps.matrix_elements);
  EXPECT_TRUE(granted.caps.matrices.empty());
  EXPECT_FALSE(granted.want.memory_model.vulkanMemoryModel);
  for (const Feature& f : granted.list)
    EXPECT_TRUE(!f.name.starts_with("cooperative_matrix") || !f.present) << f.name;
}

TEST_F(SelfTestTest, RemembersItsVerdict) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("forge-st-{}", getpid());
  const ScopedEnvironment cache("XDG_CACHE_HOME", folder.string());
  const Queries& q = device_->context()->queries();
  EXPECT_FALSE(ReadSelfTest(q));
  ASSERT_OK(WriteSelfTest(q, {.passed = {"fp16"},
                              .failed = {{"int_dot", "wrong\nsum"}},
                              .rates = Rates{3e9, 1.25e9, 8 << 20}}));
  const auto read = ReadSelfTest(q);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->passed.count("fp16"), 1u);
  EXPECT_EQ(read->failed, (Failures{{"int_dot", "wrong sum"}}));
  ASSERT_TRUE(read->rates);
  EXPECT_EQ(read->rates->flops, 3e9);
  EXPECT_EQ(read->rates->bytes, 1.25e9);
  EXPECT_EQ(read->rates->cache_bytes, 8 << 20);
  for (const auto& file : std::filesystem::directory_iterator(folder / "forge"))
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 2);
  EXPECT_FALSE(ReadSelfTest(q));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forge::vk
