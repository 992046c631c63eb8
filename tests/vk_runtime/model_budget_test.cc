// SPDX-License-Identifier: Apache-2.0
// How many dispatches and barriers models take on Vulkan devices, after fusing.
#include "runtime/plan/executable.h"
#include "runtime/session.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

struct ModelBudget {
  std::string name;
  std::map<std::string, int64_t> dims;
  int most_dispatches;
  std::filesystem::path path = CachedModel(name);  // before tests get a cache of their own
  friend std::ostream& operator<<(std::ostream& out, const ModelBudget& b) { return out << b.name; }
};

std::vector<ModelBudget> ModelBudgets() {
  return {{"minilm", {{"batch", 1}, {"sequence", 256}}, 62},
          {"ppocr-det",
           {{"p2o.DynamicDimension.0", 1},
            {"p2o.DynamicDimension.1", 640},
            {"p2o.DynamicDimension.2", 640}},
           95},
          {"ppocr-cls", {{"x.0", 1}, {"x.2", 48}, {"x.3", 192}}, 72}};
}

class SlowModelBudgetTest : public VulkanTest, public ::testing::WithParamInterface<ModelBudget> {
 protected:
  // Runs on zeros: what is counted does not depend on values.
  static void Run(Session& session) {
    std::vector<NamedTensor> inputs;
    const ir::Function& function = session.executable()->function();
    for (const ir::Function::Input& input : function.arguments()) {
      const ir::Type& type = function.type(input.value);
      FORGE_ASSERT_OK_AND_ASSIGN(ir::HostValue zeros,
                                 ir::HostValue::Zeros(type.dtype(), ir::Constants(type.shape())));
      inputs.push_back({input.name, std::move(zeros)});
    }
    FORGE_ASSERT_OK_AND_ASSIGN(auto results, session.Run(inputs));
  }
};

TEST_P(SlowModelBudgetTest, CompilesToFewDispatchesAndNoMoreBarriers) {
  const ModelBudget& budget = GetParam();
  if (!std::filesystem::exists(budget.path)) GTEST_SKIP() << "tools/fetch-models --all has not run";
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(budget.path));
  const bool executes = Executes();
  FORGE_ASSERT_OK_AND_ASSIGN(
      auto session,
      Session::Create(model, device_, {.dims = budget.dims, .debug = {.compile_only = !executes}}));
  ASSERT_OK(session->Bind({}));
  const int dispatches = session->statistics().dispatches;
  // A device that binds no more buffers than it must cannot fuse residuals.
  if (device_->context()->caps().max_operands > codegen::Caps{}.max_operands) {
    EXPECT_LE(dispatches, budget.most_dispatches);
  }
  if (!executes) return;
  ASSERT_NO_FATAL_FAILURE(Run(*session));
  EXPECT_GT(session->statistics().barriers, 0);
  EXPECT_LE(session->statistics().barriers, dispatches);
}

INSTANTIATE_TEST_SUITE_P(Models, SlowModelBudgetTest, ::testing::ValuesIn(ModelBudgets()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace forge::vk
