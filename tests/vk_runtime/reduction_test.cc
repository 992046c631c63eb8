// SPDX-License-Identifier: Apache-2.0
// A product and the reduction of its rows as one step.
#include <gmock/gmock.h>

#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

constexpr int64_t kDepth = 96, kColumns = 16;

template <class Kernels>
class ReductionTest : public Kernels {
 protected:
  // y = sqrt(mean of relu(x w + b) over its rows), of any number of them, and the rows too where
  // `shared`.
  static std::shared_ptr<const Model> ReducedProduct(bool shared) {
    const auto kRole = ir::Variable::Role::kParameter;
    auto m = std::make_unique<ir::Module>();
    ir::Function& f = *m->AddFunction("main");
    const auto read = [&](std::string name, const std::vector<int64_t>& shape) {
      return f.Read(testing::AddVariable(*m, std::move(name), kRole, testing::Noise(shape)));
    };
    const ir::Value x = f.Argument("x", F32({ir::Dim(m->SymbolNamed("n")), kDepth}));
    const ir::Value product = f(ir::MatMul{}, {x, read("w", {kDepth, kColumns})});
    const ir::Value rows = f(ir::Relu{}, {f(ir::Add{}, {product, read("b", {kColumns})})});
    const ir::Reduce mean{.kind = ir::ReduceKind::kMean, .axes = {1}, .keep_dims = false};
    f.Return("y", f(ir::Sqrt{}, {f(mean, {rows})}));
    if (shared) f.Return("rows", rows);
    return std::make_shared<const Model>(std::move(m));
  }
  // Runs it on `device`, with as many steps as that takes.
  static absl::StatusOr<std::vector<NamedTensor>> Run(const DeviceRef& device, bool shared,
                                                      int64_t rows, size_t& steps) {
    FORGE_ASSIGN_OR_RETURN(const auto session, Session::Create(ReducedProduct(shared), device));
    const NamedTensor x{"x", testing::Noise({rows, kDepth}, 7)};
    FORGE_ASSIGN_OR_RETURN(auto results, session->Run({&x, 1}));
    steps = testing::ComputingSteps(*session);
    return results;
  }
  void ExpectSteps(bool shared, int64_t rows, size_t expected) {
    size_t steps = 0, all = 0;
    FORGE_ASSERT_OK_AND_ASSIGN(const DeviceRef reference, OpenDevice("reference", {}));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, Run(reference, shared, rows, all));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, Run(this->device_, shared, rows, steps));
    FORGE_ASSERT_OK_AND_ASSIGN(const Comparison same, Compare(got, want));
    EXPECT_TRUE(same.within());
    EXPECT_EQ(steps, expected);
  }
};

// Of the device's own kind, and of GPUs.
using ReductionKinds = ::testing::Types<VulkanRunTest, GpuKernelTest>;
TYPED_TEST_SUITE(ReductionTest, ReductionKinds);

TYPED_TEST(ReductionTest, IsComputedByTheProductsKernel) {
  for (const int64_t rows : {1, 2, 517}) this->ExpectSteps(false, rows, 1);
}

TYPED_TEST(ReductionTest, StaysApartWhereOthersReadTheRows) { this->ExpectSteps(true, 517, 2); }

}  // namespace
}  // namespace forge::vk
