// SPDX-License-Identifier: Apache-2.0
// Values that one allocation cannot hold.
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/product/matmul.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class AllocationTest : public VulkanRunTest {
 protected:
  static constexpr uint64_t kMost = 64 << 10;
  void SetUp() override {
    VulkanRunTest::SetUp();
    const ScopedEnvironment limit("FORGE_VK_LIMITS", fmt::format("max_allocation_bytes={}", kMost));
    Open();
  }
  void CopyAndWait(const Device::CopyRange& range) {
    const auto done = device_->Copy(range, {});
    ASSERT_OK(done.status());
    ASSERT_OK(device_->Wait(*done, -1));
  }
  // y = relu(x w) v, each larger than kMost.
  static std::shared_ptr<const Model> TwoProducts() {
    const auto kRole = ir::Variable::Role::kParameter;
    auto m = std::make_unique<ir::Module>();
    ir::Function& f = *m->AddFunction("main");
    const ir::Value x = f.Argument("x", F32({384, 64}));
    const auto read = [&](std::string name, const std::vector<int64_t>& shape) {
      return f.Read(testing::AddVariable(*m, std::move(name), kRole, testing::Noise(shape)));
    };
    const ir::Value wide = f(ir::Relu{}, {f(ir::MatMul{}, {x, read("w", {64, 320})})});
    f.Return("y", f(ir::MatMul{}, {wide, read("v", {320, 64})}));
    return std::make_shared<const Model>(std::move(m));
  }
  static absl::StatusOr<std::vector<NamedTensor>> Run(const DeviceRef& device) {
    FORGE_ASSIGN_OR_RETURN(const auto session, Session::Create(TwoProducts(), device));
    const NamedTensor x{"x", testing::Noise({384, 64}, 7)};
    return session->Run({&x, 1});
  }
};

TEST_F(AllocationTest, BindsNoMoreThanAnAllocationHolds) {
  EXPECT_EQ(device_->largest_buffer(), kMost);
  EXPECT_EQ(device_->context()->caps().max_operand_bytes, kMost);
}

TEST_F(AllocationTest, CopiesAcrossAllocations) {
  constexpr size_t kWords = 3 * kMost / 4 + 100, kHalf = kMost / 8, kOdd = 36;
  const auto large = device_->Allocate(Memory::kDevice, kWords * 4);
  ASSERT_OK(large.status());
  const auto x = Iota(kWords);
  for (size_t at = 0; at < kWords; at += kHalf) {
    const size_t n = std::min(kHalf, kWords - at);
    CopyAndWait(
        {Upload(std::vector(x.begin() + at, x.begin() + at + n)), 0, *large, at * 4, n * 4});
  }
  const auto other = device_->Allocate(Memory::kDevice, kWords * 4 + kOdd);
  ASSERT_OK(other.status());
  CopyAndWait({*large, 0, *other, kOdd, kWords * 4});
  for (size_t at = 0; at < kWords; at += kHalf) {
    const size_t n = std::min(kHalf, kWords - at);
    const BufferRef part = Upload(std::vector<uint32_t>(n));
    CopyAndWait({*other, at * 4 + kOdd, part, 0, n * 4});
    const auto y = Download<uint32_t>(part);
    EXPECT_TRUE(std::equal(y.begin(), y.end(), x.begin() + at)) << "from word " << at;
  }
}

TEST_F(AllocationTest, ComputesOnWhatOneCannotHold) {
  FORGE_ASSERT_OK_AND_ASSIGN(const DeviceRef reference, OpenDevice("reference", {}));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto want, Run(reference));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto got, Run(device_));
  FORGE_ASSERT_OK_AND_ASSIGN(const Comparison same, Compare(got, want));
  EXPECT_TRUE(same.within());
}

TEST_F(AllocationTest, RefusesWhatTheHostWouldMap) {
  const auto upload = device_->Allocate(Memory::kUpload, kMost + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(upload.status()));
  EXPECT_NE(Message(upload.status()).find("65537"), std::string_view::npos);
  const auto endless = device_->Allocate(Memory::kDevice, UINT64_MAX);
  EXPECT_TRUE(absl::IsResourceExhausted(endless.status()));
}

}  // namespace
}  // namespace forge::vk
