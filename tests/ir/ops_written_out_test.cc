// SPDX-License-Identifier: Apache-2.0
// Decompositions whose size depends on numbers of a file.
#include <gtest/gtest.h>

#include "ir/graph/module.h"
#include "ir/ops/fft/dft.h"
#include "ir/ops/loss/ctc_loss.h"
#include "ir/ops/movement/diff.h"
#include "ir/ops/pooling/adaptive_pool.h"
#include "ir/ops/recurrent/recurrent_steps.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

using absl::StatusCode;

absl::Status StatusOfParts(const AnyOp& op, const std::vector<Dims>& shapes) {
  Function f("case");
  Values in;
  for (const Dims& shape : shapes)
    in.push_back(f.Argument(fmt::format("x{}", in.size()), Type::Tensor(DType::kF32, shape)));
  op.Decompose(f, in);
  return f.status();
}

TEST(WrittenOutTest, StepsAreLimited) {
  EXPECT_TRUE(StatusOfParts(LstmSteps{}, {{3, 1, 4}, {1, 4}}).ok());
  for (const int64_t steps : {int64_t{5000}, int64_t{1} << 40}) {
    EXPECT_THAT(StatusOfParts(LstmSteps{}, {{steps, 1, 4}, {1, 4}}),
                Fails(StatusCode::kUnimplemented, "steps cannot be written out"));
    EXPECT_THAT(StatusOfParts(GruSteps{}, {{steps, 1, 3}, {1, 3}}),
                Fails(StatusCode::kUnimplemented, "steps cannot be written out"));
    EXPECT_THAT(StatusOfParts(Diff{.n = steps}, {{3}}),
                Fails(StatusCode::kUnimplemented, "steps cannot be written out"));
    EXPECT_THAT(StatusOfParts(AdaptiveAvgPool{{2}}, {{1, 1, 2 * steps}}),
                Fails(StatusCode::kUnimplemented, "steps cannot be written out"));
    EXPECT_THAT(StatusOfParts(AdaptiveMaxPool{{2}}, {{1, 1, 2 * steps}}),
                Fails(StatusCode::kUnimplemented, "steps cannot be written out"));
    EXPECT_TRUE(StatusOfParts(AdaptiveAvgPool{{1}}, {{1, 1, steps}}).ok());
    EXPECT_THAT(StatusOfParts(CtcLoss{}, {{steps, 1, 2}, {1, 1}, {1}, {1}}),
                Fails(StatusCode::kUnimplemented, "steps cannot be written out"));
  }
}

TEST(WrittenOutTest, TransformsAreLimited) {
  EXPECT_TRUE(StatusOfParts(Dft{}, {{1, 1 << 20}}).ok());
  EXPECT_THAT(StatusOfParts(Dft{}, {{1, int64_t{1} << 40}}),
              Fails(StatusCode::kUnimplemented, "a transform of 1099511627776 elements"));
}

}  // namespace
}  // namespace forge::ir
