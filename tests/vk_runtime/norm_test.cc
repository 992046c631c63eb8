// SPDX-License-Identifier: Apache-2.0
// A layer norm and the product that reads it as one step.
#include <gmock/gmock.h>

#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/matmul.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

template <class Kernels>
class NormTest : public Kernels {
 protected:
  // y = relu(layer_norm(x) w + b), and the norm too where `shared`.
  static std::shared_ptr<const Model> NormAndProduct(bool shared) {
    const auto kRole = ir::Variable::Role::kParameter;
    auto m = std::make_unique<ir::Module>();
    ir::Function& f = *m->AddFunction("main");
    const auto read = [&](std::string name, const std::vector<int64_t>& shape) {
      return f.Read(testing::AddVariable(*m, std::move(name), kRole, testing::Noise(shape)));
    };
    const ir::Value x = f.Argument("x", F32({ir::Dim(m->SymbolNamed("n")), 256}));
    const ir::Value norm = f(ir::LayerNorm{}, {x, read("gamma", {256}), read("beta", {256})});
    const ir::Value product = f(ir::MatMul{}, {norm, read("w", {256, 32})});
    f.Return("y", f(ir::Relu{}, {f(ir::Add{}, {product, read("b", {32})})}));
    if (shared) f.Return("norm", norm);
    return std::make_shared<const Model>(std::move(m));
  }
  // Runs it on `device`, with as many steps as that takes.
  static absl::StatusOr<std::vector<NamedTensor>> Run(const DeviceRef& device, bool shared,
                                                      size_t& steps) {
    FORGE_ASSIGN_OR_RETURN(const auto session, Session::Create(NormAndProduct(shared), device));
    const NamedTensor x{"x", testing::Noise({1100, 256}, 7)};
    FORGE_ASSIGN_OR_RETURN(auto results, session->Run({&x, 1}));
    steps = testing::ComputingSteps(*session);
    return results;
  }
  void ExpectSteps(bool shared, size_t expected) {
    size_t steps = 0, all = 0;
    FORGE_ASSERT_OK_AND_ASSIGN(const DeviceRef reference, OpenDevice("reference", {}));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, Run(reference, shared, all));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, Run(this->device_, shared, steps));
    FORGE_ASSERT_OK_AND_ASSIGN(const Comparison same, Compare(got, want));
    EXPECT_TRUE(same.within());
    EXPECT_EQ(steps, expected);
  }
};

// Of the device's own kind, and of GPUs.
using NormKinds = ::testing::Types<VulkanRunTest, GpuKernelTest>;
TYPED_TEST_SUITE(NormTest, NormKinds);

TYPED_TEST(NormTest, IsComputedWhereItsProductLoads) {
  if (this->device_->context()->caps().max_operands < 8)
    GTEST_SKIP() << "too few operands are bound";
  this->ExpectSteps(false, 1);
}

TYPED_TEST(NormTest, StaysApartWhereOthersReadIt) { this->ExpectSteps(true, 2); }

}  // namespace
}  // namespace forge::vk
