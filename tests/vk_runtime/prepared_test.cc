// SPDX-License-Identifier: Apache-2.0
// What a kernel would make of a constant operand at every run, made once.
#include <gmock/gmock.h>

#include "ir/ops/compiler/relayout.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

const ir::Type kImages = F32({1, 32, 32, 32}), kKernels = F32({32, 32, 3, 3});
const ir::Conv kConvolution{.padding = {1, 1, 1, 1}};

// y = relu(conv(x, w)), of a constant w.
std::shared_ptr<const Model> Convolution() {
  auto m = std::make_unique<ir::Module>();
  ir::Function& f = *m->AddFunction("main");
  const ir::Value x = f.Argument("x", kImages);
  const ir::Value w = f.Read(testing::AddVariable(*m, "w", ir::Variable::Role::kParameter,
                                                  testing::Noise({32, 32, 3, 3})));
  f.Return("y", f(ir::Relu{}, {f(kConvolution, {x, w})}));
  return std::make_shared<const Model>(std::move(m));
}

class PreparedTest : public VulkanTest {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (IsSkipped()) return;
    const ir::AnyOp op = kConvolution;
    const ir::Types in{kImages, kKernels}, out = *op.Infer(in);
    const CompileRequest request{&op, in, out, "a convolution"};
    const auto program = device_->Compile({&request, 1}, [](size_t) { return true; });
    ASSERT_OK(program[0].status());
    if (!(*program[0])->kernel().starts_with("conv_winograd"))
      GTEST_SKIP() << "this device does not transform kernels";
  }
  std::vector<ir::EncodingChoice> ChoicesOf(const ir::Type& x, const ir::Type& w) const {
    const ir::AnyOp op = kConvolution;
    const ir::Types in{x, w};
    return device_->target().Encodings({op, in, *op.Infer(in)});
  }
  // Of a run on random images, on `device`.
  static absl::StatusOr<std::vector<NamedTensor>> Result(const DeviceRef& device,
                                                         const SessionOptions& options = {}) {
    FORGE_ASSIGN_OR_RETURN(const auto session, Session::Create(Convolution(), device, options));
    const NamedTensor x{"x", testing::Noise({1, 32, 32, 32}, 7)};
    return session->Run({&x, 1});
  }
};

TEST_F(PreparedTest, KernelsOfAConvolutionAreOfferedTransformed) {
  const std::vector<ir::EncodingChoice> choices = ChoicesOf(kImages, kKernels);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].in, (std::vector<ir::EncodingRef>{nullptr, nullptr}));
  EXPECT_EQ(choices[1].in[0], nullptr);
  ASSERT_NE(choices[1].in[1], nullptr);
  EXPECT_GT(choices[0].seconds, choices[1].seconds);
  // No constant: as dear as the launch it saves.
  const ir::Types from{kKernels}, to{kKernels.With(choices[1].in[1])};
  EXPECT_EQ(choices[0].seconds,
            choices[1].seconds + device_->target().Seconds({ir::Relayout{.to = to[0]}, from, to}));
  EXPECT_TRUE(ChoicesOf(F32({1, 32, 8, 8}), kKernels).empty());
  EXPECT_TRUE(ChoicesOf(kImages.With(DType::kF16), kKernels.With(DType::kF16)).empty());
}

TEST_F(PreparedTest, ASearchDecidesWhetherTheyAre) {
  const ir::AnyOp op = kConvolution;
  const ir::Types in{kImages, kKernels}, out = *op.Infer(in);
  const std::vector<std::string> choices = device_->Choices({&op, in, out, "a convolution"}, 100);
  const auto other = std::find_if(choices.begin(), choices.end(), [](const std::string& c) {
    return !c.starts_with("conv_winograd");
  });
  ASSERT_NE(other, choices.end());
  ASSERT_OK(device_->Prefer({&op, in, out, "a convolution", *other}));
  EXPECT_TRUE(ChoicesOf(kImages, kKernels).empty());
}

TEST_F(PreparedTest, NoOtherKernelReadsThem) {
  const ir::Type made = kKernels.With(ChoicesOf(kImages, kKernels)[1].in[1]);
  const ir::AnyOp relu = ir::Relu{};
  const CompileRequest request{&relu, {&made, 1}, {&kKernels, 1}, "relu"};
  const auto program = device_->Compile({&request, 1}, [](size_t) { return true; });
  EXPECT_THAT(std::string(Message(program[0].status())),
              ::testing::HasSubstr("no kernel reads or writes the encoding winograd"));
}

TEST_F(PreparedTest, ConstantsAreTransformedBeforeTheFirstRun) {
  FORGE_ASSERT_OK_AND_ASSIGN(const auto session, Session::Create(Convolution(), device_));
  ASSERT_OK(session->Bind({}));
  EXPECT_EQ(session->statistics().dispatches, 3) << "inputs, products and results";
}

TEST_F(PreparedTest, StepsShowTheKernelsThatWereTransformed) {
  if (!Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  FORGE_ASSERT_OK_AND_ASSIGN(
      const auto session, Session::Create(Convolution(), device_, {.debug = {.stepwise = true}}));
  const NamedTensor x{"x", testing::Noise({1, 32, 32, 32}, 7)};
  int steps = 0;
  const auto observe = [&](const StepView& step) -> absl::Status {
    FORGE_ASSIGN_OR_RETURN(const bool agrees, StepAgrees(step));
    EXPECT_TRUE(agrees) << step.info.label;
    ++steps;
    return absl::OkStatus();
  };
  ASSERT_OK(session->RunStepwise({&x, 1}, observe).status());
  EXPECT_EQ(steps, 1);
  std::string types;
  for (const StepInfo& step : session->executable()->steps()) types += step.types;
  EXPECT_THAT(types, ::testing::HasSubstr("winograd"));
}

TEST_F(PreparedTest, AgreesWithTheReference) {
  if (!Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  FORGE_ASSERT_OK_AND_ASSIGN(const DeviceRef reference, OpenDevice("reference", {}));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto want, Result(reference));
  for (const double seconds : {0.0, 2.0}) {
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, Result(device_, {.autotune = {.seconds = seconds}}));
    FORGE_ASSERT_OK_AND_ASSIGN(const Comparison same, Compare(got, want));
    EXPECT_TRUE(same.within()) << "after a search of " << seconds << " s";
  }
}

}  // namespace
}  // namespace forge::vk
