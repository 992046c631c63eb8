// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/driver.h"

#include <gtest/gtest.h>

namespace forge::cuda {
namespace {

TEST(CudaDriverTest, SaysInOneSentenceWhyThereIsNoDevice) {
  CudaDriver driver("libcuda-that-is-not-there.so");
  const auto all = driver.List();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].id, "cuda");
  EXPECT_FALSE(all[0].usable);
  EXPECT_NE(all[0].usable.text().find("no NVIDIA driver"), std::string::npos);
  EXPECT_TRUE(absl::IsUnavailable(driver.Open(0, {}).status()));
}

TEST(CudaDriverTest, RefusesALibraryThatIsAnother) {
  CudaDriver driver("libm.so.6");
  EXPECT_NE(driver.List().at(0).usable.text().find("cuInit"), std::string::npos);
}

TEST(CudaDriverTest, OpensTheDevicesThatItListsAsUsable) {
  CudaDriver driver;
  const std::vector<DeviceInfo> all = driver.List();
  ASSERT_FALSE(all.empty());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].backend, "cuda");
    const absl::Status opened = driver.Open(i, {.cache = false}).status();
    EXPECT_EQ(opened.ok(), bool{all[i].usable}) << opened;
    EXPECT_TRUE(opened.ok() || absl::IsUnavailable(opened)) << opened;
    EXPECT_TRUE(all[i].usable || !all[i].usable.text().empty());
  }
}

}  // namespace
}  // namespace forge::cuda
