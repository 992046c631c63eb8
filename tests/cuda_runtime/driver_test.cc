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

TEST(CudaDriverTest, ListsWhatTheMachineHas) {
  CudaDriver driver;
  for (const DeviceInfo& info : driver.List()) {
    EXPECT_EQ(info.backend, "cuda");
    EXPECT_FALSE(info.usable.text().empty());
  }
  const absl::Status opened = driver.Open(0, {}).status();
  EXPECT_TRUE(absl::IsUnimplemented(opened) || absl::IsUnavailable(opened));
}

}  // namespace
}  // namespace forge::cuda
