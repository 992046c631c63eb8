// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/self_test.h"

#include <unistd.h>

#include <algorithm>

#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class SelfTestTest : public VulkanRunTest {};

TEST_F(SelfTestTest, PassesOnADeviceThatComputes) {
  const SelfTest test = RunSelfTest(*device_);
  const std::vector<Feature>& list = device_->info().features;
  const bool anything = std::any_of(list.begin(), list.end(),
                                    [](const Feature& f) { return f.present && IsTried(f.name); });
  EXPECT_EQ(test.ran, anything);
  for (const auto& [feature, what] : test.failed) ADD_FAILURE() << feature << ": " << what;
}

TEST_F(SelfTestTest, HidesWhatFailed) {
  const Queries& q = device_->context()->queries();
  const auto granted = Grant(q, {}, {{"subgroup_shuffle", "it lost a lane"}});
  ASSERT_OK(granted.status());
  EXPECT_FALSE(granted->caps.subgroup_shuffle);
  for (const Feature& f : granted->list) EXPECT_TRUE(f.name != "subgroup_shuffle" || !f.present);
}

TEST_F(SelfTestTest, RemembersItsVerdict) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("forge-st-{}", getpid());
  const ScopedEnvironment cache("XDG_CACHE_HOME", folder.string());
  const Queries& q = device_->context()->queries();
  EXPECT_FALSE(ReadSelfTest(q));
  ASSERT_OK(WriteSelfTest(q, {.failed = {{"int_dot", "wrong\nsum"}}, .ran = true}));
  const auto read = ReadSelfTest(q);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->ran);
  EXPECT_EQ(read->failed, (Failures{{"int_dot", "wrong sum"}}));
  for (const auto& file : std::filesystem::directory_iterator(folder / "forge"))
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 2);
  EXPECT_FALSE(ReadSelfTest(q));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forge::vk
