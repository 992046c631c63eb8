// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cache_file.h"
#include "cuda_runtime/kernels/kernel_store.h"
#include "tests/support/temp_folder.h"

namespace forge::cuda {
namespace {

using ::testing::HasSubstr;

std::optional<KernelImage> ReadTitled(const std::filesystem::path& path, std::string_view title) {
  return ReadKernelImage(path, [&](std::string_view t) { return t == title; });
}

TEST(ModuleFileTest, ReadsBackWhatItWrote) {
  const TempFolder folder;
  const auto path = folder.path() / "a" / "k.kernel";
  const KernelImage image{.entry = "f",
                          .image = std::string("\x7f"
                                               "ELF\0\n x",
                                               8),
                          .log = "log\n"};
  ASSERT_TRUE(WriteKernelImage(path, "title", image).ok());
  const auto read = ReadTitled(path, "title");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->entry, image.entry);
  EXPECT_EQ(read->image, image.image);
  EXPECT_EQ(read->log, image.log);
  EXPECT_TRUE(IsCubin(*read));
  EXPECT_FALSE(ReadTitled(path, "another title").has_value());
  EXPECT_FALSE(ReadTitled(folder.path() / "absent", "title").has_value());
}

TEST(ModuleFileTest, RefusesAnyDamage) {
  const TempFolder folder;
  const auto path = folder.path() / "k.kernel";
  ASSERT_TRUE(WriteKernelImage(path, "title", {.entry = "f", .image = "ptx", .log = ""}).ok());
  const std::string whole = ReadCacheFile(path);
  for (size_t n = 0; n < whole.size(); ++n) {
    ASSERT_TRUE(WriteCacheFile(path, whole.substr(0, n)).ok());
    EXPECT_FALSE(ReadTitled(path, "title").has_value()) << "cut at " << n;
    std::string flipped = whole;
    flipped[n] ^= 1;
    ASSERT_TRUE(WriteCacheFile(path, flipped).ok());
    EXPECT_FALSE(ReadTitled(path, "title").has_value()) << "flipped at " << n;
  }
}

TEST(KernelStoreTest, FindsStatisticsInTheLog) {
  const auto all = StatisticsIn(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Function properties for f\n"
      "    8 bytes stack frame, 24 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 8704 bytes smem\n",
      "k");
  std::map<std::string, double> values;
  for (const KernelStatistic& s : all) values[s.name] = s.value;
  EXPECT_EQ(values["registers"], 32);
  EXPECT_EQ(values["spilled bytes"], 24);
  EXPECT_EQ(values["shared bytes"], 8704);
  EXPECT_EQ(values["stack bytes"], 8);
}

TEST(FactsTest, ChoosesMatricesByCapability) {
  const auto text = [](std::string_view architecture) {
    std::string all;
    for (const auto& m : CapsOf(*FactsOfArchitecture(architecture)).matrices)
      all += m.ToText() + " ";
    return all;
  };
  EXPECT_EQ(text("sm_75"), "f16_16x8x8 ");
  EXPECT_THAT(text("sm_80"), HasSubstr("f16_16x8x16 "));
  EXPECT_THAT(text("sm_80"), HasSubstr("u8_i8_16x8x32 "));
}

TEST(FactsTest, RefusesOldDevicesAndOtherWords) {
  EXPECT_FALSE(Usable(*FactsOfArchitecture("sm_70")));
  EXPECT_TRUE(Usable(*FactsOfArchitecture("sm_75")));
  EXPECT_TRUE(absl::IsInvalidArgument(FactsOfArchitecture("ampere").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FactsOfArchitecture("sm_8o").status()));
}

}  // namespace
}  // namespace forge::cuda
