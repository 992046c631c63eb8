// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/backends.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

OutputDifference One(const ir::HostValue& x, const ir::HostValue& r) {
  auto c = Compare({{"y", x}}, {{"y", r}});
  EXPECT_THAT(c, Succeeds());
  return c->outputs.at(0);
}

TEST(CompareTest, MeasuresTheDistance) {
  const OutputDifference d = One(Tensor({4}, {3, 4, 0, 0.5}), Tensor({4}, {3, 4, 0, 0}));
  EXPECT_NEAR(d.rel_error, 0.1, 1e-12);
  EXPECT_NEAR(d.nmse, 0.01, 1e-12);
  EXPECT_EQ(d.max_abs, 0.5);
  EXPECT_FALSE(d.within);
  EXPECT_TRUE(One(Tensor({2}, {1, 2}), Tensor({2}, {1, 2})).within);
  EXPECT_EQ(One(Tensor({2}, {0, 0}), Tensor({2}, {0, 0})).rel_error, 0);
  EXPECT_TRUE(std::isinf(One(Tensor({2}, {0, 1}), Tensor({2}, {0, 0})).rel_error));
  EXPECT_TRUE(One(Tensor({0, 3}, {}), Tensor({0, 3}, {})).within);
}

// Each is within 1e-4 of 1, on either side of it.
TEST(CompareTest, TwoDevicesMayDifferByTheSumOfTheirBounds) {
  const ir::HostValue exact = Tensor({1}, {1}), low = Tensor({1}, {1 - 8e-5}),
                      high = Tensor({1}, {1 + 8e-5}), far = Tensor({1}, {1 + 14e-5});
  EXPECT_TRUE(One(low, exact).within && One(high, exact).within);
  EXPECT_FALSE(One(high, low).within);
  const auto within = [](const ir::HostValue& a, const ir::HostValue& b) {
    return Compare({{"y", a}}, {{"y", b}}, Against::kDevice)->within();
  };
  EXPECT_TRUE(within(high, low));
  EXPECT_FALSE(within(far, low));
}

TEST(CompareTest, LooksAtClassesAndSpecials) {
  const ir::HostValue r = Tensor({2, 3}, {1, 2, 3, 30000, 1, 0});
  // So near that the error alone would pass.
  const OutputDifference flipped =
      One(Tensor({2, 3}, {1, 3, 2.9, 30000, 1, 0}), Tensor({2, 3}, {1, 2.9, 3, 30000, 1, 0}));
  EXPECT_LT(flipped.rel_error, 1e-4);
  EXPECT_FALSE(flipped.same_classes || flipped.within);
  EXPECT_TRUE(One(r, r).same_classes);
  const double nan = NAN, inf = INFINITY;
  EXPECT_TRUE(One(Tensor({3}, {nan, inf, 1}), Tensor({3}, {nan, inf, 1})).within);
  EXPECT_FALSE(One(Tensor({3}, {0, inf, 1}), Tensor({3}, {nan, inf, 1})).same_specials);
  EXPECT_FALSE(One(Tensor({3}, {nan, -inf, 1}), Tensor({3}, {nan, inf, 1})).within);
}

// 2.95 is within 3e-2 of 3, and 2.8 is not.
TEST(CompareTest, RoundedProductsMayFlipWhatIsNear) {
  const auto same_classes = [](std::initializer_list<double> x, std::initializer_list<double> r,
                               DType precision) {
    return Compare({{"y", Tensor({1, 3}, x)}}, {{"y", Tensor({1, 3}, r)}}, Against::kReference,
                   {precision})
        ->outputs.at(0)
        .same_classes;
  };
  EXPECT_FALSE(same_classes({1, 3, 2.95}, {1, 2.95, 3}, DType::kF32));
  EXPECT_FALSE(same_classes({1, 3, 2.95}, {1, 2.95, 3}, DType::kF16));
  EXPECT_TRUE(same_classes({1, 3, 2.95}, {1, 2.95, 3}, DType::kBF16));
  EXPECT_FALSE(same_classes({1, 3, 2.8}, {1, 2.8, 3}, DType::kBF16));
}

TEST(CompareTest, IntegersAreEqualOrWrong) {
  const int64_t shape[] = {2};
  ir::HostValue a = *ir::HostValue::Zeros(DType::kI64, shape), b = a;
  a.SetI64(0, 1'000'000'000);
  b.SetI64(0, 1'000'000'001);
  EXPECT_FALSE(One(a, b).within);
  EXPECT_TRUE(One(a, a).within);
}

TEST(CompareTest, RefusesWhatIsNotTheSameOutput) {
  const ir::HostValue x = Tensor({2}, {1, 2});
  constexpr auto kBug = absl::StatusCode::kInternal;
  EXPECT_THAT(Compare({{"y", x}}, {}), Fails(kBug, "1 outputs instead of 0"));
  EXPECT_THAT(Compare({{"y", x}}, {{"z", x}}), Fails(kBug, "'z'"));
  EXPECT_THAT(Compare({{"y", x}}, {{"y", Tensor({1, 2}, {1, 2})}}), Fails(kBug, "f32[1, 2]"));
}

TEST(CompareTest, FindsTheWorst) {
  const ir::HostValue one = Tensor({1}, {1}), near = Tensor({1}, {1 + 1e-5}),
                      far = Tensor({1}, {2});
  FORGE_ASSERT_OK_AND_ASSIGN(Comparison c, Compare({{"a", near}, {"b", far}, {"c", one}},
                                                   {{"a", one}, {"b", one}, {"c", one}}));
  ASSERT_NE(c.worst(), nullptr);
  EXPECT_EQ(c.worst()->output, "b");
  EXPECT_FALSE(c.within());
  EXPECT_EQ(Comparison{}.worst(), nullptr);
  EXPECT_TRUE(Comparison{}.within());
}

TEST(CompareTest, BoundsDependOnTheType) {
  EXPECT_GT(ModelBound(DType::kBF16), ModelBound(DType::kF16));
  EXPECT_GT(ModelBound(DType::kF16), ModelBound(DType::kF32));
  EXPECT_EQ(ModelBound(DType::kI32), 0);
}

TEST(CompareTest, StepsAgreeOrNot) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice("reference", {}));
  FORGE_ASSERT_OK_AND_ASSIGN(
      auto s, Session::Create(testing::AddingModel(), device, {.debug = {.stepwise = true}}));
  const NamedTensor x{"x", Tensor({1, 3}, {1, 2, -40})};
  int steps = 0;
  auto observe = [&](const StepView& v) -> absl::Status {
    ++steps;
    FORGE_ASSIGN_OR_RETURN(bool agrees, StepAgrees(v));
    EXPECT_TRUE(agrees) << v.info.label;
    StepView wrong{v.node, v.in, v.out, v.info};
    wrong.out[0].Set(0, 1e6);
    FORGE_ASSIGN_OR_RETURN(agrees, StepAgrees(wrong));
    EXPECT_FALSE(agrees) << v.info.label;
    return absl::OkStatus();
  };
  FORGE_ASSERT_OK_AND_ASSIGN(auto y, s->RunStepwise({&x, 1}, observe));
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(Numbers(y[0].value), (std::vector<double>{11, 22, 0}));
  // An observer may end the run.
  EXPECT_THAT(s->RunStepwise({&x, 1}, [](const StepView&) { return Aborted("enough"); }),
              Fails(absl::StatusCode::kAborted, "enough"));
}

}  // namespace
}  // namespace forge
