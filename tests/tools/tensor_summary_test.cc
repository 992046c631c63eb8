// SPDX-License-Identifier: Apache-2.0
#include "tools/page/tensor_summary.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge::tools {
namespace {

TEST(TensorSummaryTest, CountsWhatIsThere) {
  const TensorSummary s = Summarise(FloatTensor({2, 3}, {0, 1, 2, 3, -4, 10}), 14, 4);
  EXPECT_EQ(s.elements, 6);
  EXPECT_EQ(s.looked_at, 6);
  EXPECT_EQ(s.zeros, 1);
  EXPECT_EQ(s.min, -4);
  EXPECT_EQ(s.max, 10);
  EXPECT_EQ(s.mean, 2);
  EXPECT_NEAR(s.deviation, std::sqrt(106.0 / 6), 1e-12);
  EXPECT_EQ(s.first, (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(s.histogram, (std::vector<int64_t>{1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1}));
}

TEST(TensorSummaryTest, KeepsWhatIsNotFiniteApart) {
  const float nan = NAN, inf = std::numeric_limits<float>::infinity();
  const TensorSummary some = Summarise(FloatTensor({4}, {nan, 5, inf, 5}), 3);
  EXPECT_EQ(some.not_finite, 2);
  EXPECT_EQ(some.mean, 5);
  EXPECT_EQ(some.histogram, (std::vector<int64_t>{2, 0, 0}));
  EXPECT_TRUE(Summarise(FloatTensor({1}, {nan})).histogram.empty());
  EXPECT_TRUE(Summarise(FloatTensor({0}, {})).histogram.empty());
}

TEST(TensorSummaryTest, LooksAtSomeOfVeryMany) {
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue v,
                             ir::HostValue::Zeros(DType::kU8, std::vector<int64_t>{9'000'001}));
  const TensorSummary s = Summarise(v);
  EXPECT_EQ(s.elements, 9'000'001);
  EXPECT_LT(s.looked_at, 4'500'000);
  EXPECT_EQ(s.zeros, s.looked_at);
  EXPECT_EQ(std::accumulate(s.histogram.begin(), s.histogram.end(), int64_t{0}), s.looked_at);
}

}  // namespace
}  // namespace forge::tools
