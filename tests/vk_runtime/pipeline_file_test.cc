// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <fstream>
#include <random>

#include "tests/vk_runtime/vulkan_test.h"
#include "vk_runtime/cache_file.h"

namespace forge::vk {
namespace {

class PipelineFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("forge-vk-{}-{}", getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "cache" / "vk.bin";
    queries_.properties.vendorID = 7;
    queries_.properties.pipelineCacheUUID[3] = 9;
    written_.kernels = {3, 1, UINT64_MAX};
    written_.blob = {1, 2, 3, 4, 5};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Content() const {
    std::ifstream f(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), {}};
  }
  void Put(const std::string& content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  bool Empty() const {
    const PipelineFile f = ReadPipelineFile(path_, queries_);
    return f.kernels.empty() && f.blob.empty();
  }

  std::filesystem::path folder_, path_;
  Queries queries_;
  PipelineFile written_;
};

TEST_F(PipelineFileTest, ReadsWhatItWrote) {
  ASSERT_OK(WritePipelineFile(path_, queries_, written_));
  const PipelineFile read = ReadPipelineFile(path_, queries_);
  EXPECT_EQ(read.kernels, written_.kernels);
  EXPECT_EQ(read.blob, written_.blob);
}

TEST_F(PipelineFileTest, IgnoresTheFileOfAnotherDriver) {
  ASSERT_OK(WritePipelineFile(path_, queries_, written_));
  queries_.properties.driverVersion = 1;
  EXPECT_TRUE(Empty());
}

TEST_F(PipelineFileTest, IgnoresDamage) {
  EXPECT_TRUE(Empty());  // absent
  ASSERT_OK(WritePipelineFile(path_, queries_, written_));
  const std::string good = Content();
  for (size_t n = 0; n < good.size(); ++n) {
    Put(good.substr(0, n));
    EXPECT_TRUE(Empty()) << "cut to " << n;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    Put(bad);
    EXPECT_TRUE(Empty());
  }
  Put(good);
  EXPECT_FALSE(Empty());
}

TEST_F(PipelineFileTest, SaysWhatCannotBeWritten) {
  const absl::Status s = WritePipelineFile("/proc/no/such/vk.bin", queries_, written_);
  EXPECT_FALSE(s.ok());
  EXPECT_NE(Message(s).find("/proc/no"), std::string_view::npos);
}

// The whole device on a cache folder that is new, warm, and damaged.
TEST(PipelineCacheTest, CountsWhatItCompiledAndFound) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("forge-xdg-{}", getpid());
  const ScopedEnvironment cache("XDG_CACHE_HOME", folder.string());
  const auto counts = [&]() -> std::optional<std::pair<int, int>> {
    VulkanDriver driver;
    if (!driver.List().at(0).usable) return std::nullopt;
    auto device = driver.Open(0, {.threads = 1, .cache = true});
    EXPECT_TRUE(device.ok());
    auto& vulkan = static_cast<VulkanDevice&>(**device);
    const auto shader = TransposeShader(1, 8, 8, vulkan.context()->caps());
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(MakeProgram(*shader, vulkan.pipelines(), vulkan.context()->rates()).ok());
    EXPECT_TRUE(vulkan.pipelines().Save().ok());
    return std::pair(vulkan.compile_counts().compiled, vulkan.compile_counts().cached);
  };
  const auto first = counts();
  if (!first) GTEST_SKIP() << "no Vulkan device";
  EXPECT_EQ(*first, std::pair(1, 0));
  EXPECT_EQ(*counts(), std::pair(0, 1));
  for (const auto& file : std::filesystem::directory_iterator(folder / "forge"))
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_EQ(*counts(), std::pair(1, 0));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forge::vk
