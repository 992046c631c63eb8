// SPDX-License-Identifier: Apache-2.0
// A driver whose cooperative matrices are wrong: they are noticed, and products do without them.
#include <set>

#include "ir/ops/product/matmul.h"
#include "tests/support/fault_injection.h"
#include "tests/support/temp_folder.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

using FeatureNames = std::set<std::string>;

class FaultyMatrixTest : public GpuKernelTest {
 protected:
  void SetUp() override {
    GpuKernelTest::SetUp();
    if (IsSkipped()) return;
    if (ChoiceOfMatrices().empty()) GTEST_SKIP() << "the device has no cooperative matrices of f16";
    matrices_ = Matrices();
  }

  // Those that the open device has: a feature for each shape, and one for their elements.
  FeatureNames Matrices() const {
    FeatureNames names;
    for (const Feature& f : device_->info().features)
      if (f.present && f.name.starts_with(kMatrixFeatures)) names.insert(f.name);
    return names;
  }

  // The lie lasts: it is told whenever a module is made.
  void OpenFaulty(const std::string& lie) {
    faults_.emplace(testing::FaultInjection(FORGE_BINARY_DIR, lie));
    const ScopedEnvironment hide("FORGE_VK_DISABLE", "host_cores");
    Open();
  }

  // Opens with a lie and no earlier verdict, and expects to be without what it is about alone.
  void ExpectNoticed(const std::string& lie, const FeatureNames& about) {
    SCOPED_TRACE(lie);
    const TempFolder folder;
    const ScopedEnvironment cache("XDG_CACHE_HOME", folder.path().string());
    ASSERT_NO_FATAL_FAILURE(OpenFaulty(lie));
    FeatureNames left = matrices_, failed;
    for (const std::string& name : about) left.erase(name);
    for (const Feature& f : device_->info().features)
      if (f.note.starts_with("self-test failed")) failed.insert(f.name);
    EXPECT_EQ(failed, about);
    EXPECT_EQ(Matrices(), left);
  }

  // The first way to make the product by matrices, or nothing.
  std::string ChoiceOfMatrices() const {
    const ir::AnyOp op = ir::MatMul{};
    const ir::Type in[] = {a_.type(), b_.type()}, out = ir::Type::Tensor(DType::kF16, {70, 76});
    for (const std::string& c : device_->Choices({&op, in, {&out, 1}, "a product"}, 1000))
      if (c.starts_with("matmul_matrix")) return c;
    return {};
  }
  // Makes the product by a choice, or by what is taken without one.
  absl::Status Multiply(const std::string& choice) {
    const ir::HostValue* operands[] = {&a_, &b_};
    return CheckBy(choice, ir::MatMul{}, operands);
  }

  static ir::HostValue Halves(const ir::Dims& shape, int64_t first) {
    auto v = ir::HostValue::Zeros(DType::kF16, ir::Constants(shape));
    EXPECT_TRUE(v.ok());
    for (int64_t i = 0; i < v->elements(); ++i)
      v->Set(i, static_cast<double>((i * 37 + first) % 101) / 25 - 2);
    return *std::move(v);
  }
  const ir::HostValue a_ = Halves({70, 52}, 11), b_ = Halves({52, 76}, 5);
  FeatureNames matrices_;
  std::optional<ScopedEnvironments> faults_;
};

TEST_F(FaultyMatrixTest, NoProductIsMadeByWrongMatrices) {
  ExpectNoticed("cooperative_matrix", matrices_);
  EXPECT_EQ(ChoiceOfMatrices(), "");
  ASSERT_OK(Multiply(""));
}

TEST_F(FaultyMatrixTest, AShapeIsOffByItself) {
  const std::string shape = *matrices_.lower_bound("cooperative_matrix_f16");
  ExpectNoticed(shape, {shape});
  ASSERT_OK(Multiply(""));
}

TEST_F(FaultyMatrixTest, ElementsAreOffByThemselves) {
  const std::string elements(kElementsFeature);
  if (matrices_.count(elements) == 0) GTEST_SKIP() << "kernels see no elements of matrices";
  ExpectNoticed(elements, {elements});
  const std::string choice = ChoiceOfMatrices();
  EXPECT_NE(choice, "");
  ASSERT_OK(Multiply(choice));
}

// What the verdict is for: that of an honest driver lets the lie through.
TEST_F(FaultyMatrixTest, ALieBelievedGivesAWrongProduct) {
  ASSERT_NO_FATAL_FAILURE(OpenFaulty("cooperative_matrix"));
  EXPECT_EQ(Matrices(), matrices_);
  const std::string choice = ChoiceOfMatrices();
  EXPECT_NE(choice, "");
  EXPECT_FALSE(Multiply(choice).ok()) << choice;
}

}  // namespace
}  // namespace forge::vk
