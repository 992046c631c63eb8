// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/movement/update_slice.h"
#include "ir/ops/product/matmul.h"
#include "tests/support/ir_values.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class InPlaceTest : public ::testing::Test {
 protected:
  Value A(Dims shape = {4, 4}) { return f_.Argument("a", F32(std::move(shape))); }
  std::vector<Overwrite> Overwritable(Value y) {
    f_.Return("y", y);
    EXPECT_TRUE(f_.status().ok()) << f_.status();
    return OverwritableArguments(f_);
  }
  Function f_{"region"};
};

TEST_F(InPlaceTest, ElementWiseOperandsOfTheResultsShape) {
  const Value a = A(), b = f_.Argument("b", F32({4, 4}));
  EXPECT_THAT(Overwritable(exp(a) + b * a), ElementsAre(Overwrite{0, 0}, Overwrite{1, 0}));
}

TEST_F(InPlaceTest, NotWhatIsRepeated) {
  const Value a = A(), row = f_.Argument("row", F32({4}));
  EXPECT_THAT(Overwritable(a + row), ElementsAre(Overwrite{0, 0}));
}

TEST_F(InPlaceTest, NotWhatIsReadElsewhereToo) {
  const Value a = A();
  EXPECT_THAT(Overwritable(a + f_(Transpose{.permutation = {1, 0}}, {a})), IsEmpty());
}

TEST_F(InPlaceTest, ResidualsOfAnAnchorButNotItsOperands) {
  const Value a = A(), w = f_.Argument("w", F32({4, 4})), r = f_.Argument("r", F32({4, 4}));
  EXPECT_THAT(Overwritable(f_(MatMul{}, {exp(a), w}) + r), ElementsAre(Overwrite{2, 0}));
  EXPECT_TRUE(HasAnchor(f_));
}

TEST_F(InPlaceTest, NotWhatAnotherResultReadsToo) {
  const Value a = A();
  f_.Return("other", exp(a));
  EXPECT_THAT(Overwritable(a * 2.0), IsEmpty());
}

TEST_F(InPlaceTest, EachResultHasTheOperandsThatItAloneReads) {
  const Value a = A(), m = f_.Argument("m", F32({4, 4})), g = f_.Argument("g", F32({4, 4}));
  const Value next = m * 0.9 + g;
  f_.Return("m", next);
  // g is read for both, m for the second only through the first.
  EXPECT_THAT(Overwritable(a - next * g),
              ElementsAre(Overwrite{1, 0}, Overwrite{0, 1}, Overwrite{1, 1}, Overwrite{2, 1}));
}

TEST_F(InPlaceTest, NotWhatIsAResultItself) {
  const Value a = A();
  f_.Return("before", a);
  EXPECT_THAT(Overwritable(a * 2.0), IsEmpty());
}

TEST_F(InPlaceTest, NotElementsThatShareWords) {
  const Value a = f_.Argument("a", Type::Tensor(DType::kF16, {8}));
  EXPECT_THAT(Overwritable(a * 2.0), IsEmpty());
}

TEST_F(InPlaceTest, UpdatesTakeAnArgumentThatNothingElseReads) {
  const Value a = A(), rows = f_.Argument("rows", F32({2, 4}));
  f_.Return("y", f_(UpdateSlice{{1, 0}}, {a, exp(rows)}));
  const auto update = UpdateOf(f_);
  ASSERT_TRUE(update);
  EXPECT_EQ(update->operand, 0u);
  EXPECT_EQ(update->written, F32({2, 4}));
}

TEST_F(InPlaceTest, UpdatesTakeNothingThatIsReadTwiceOrComputed) {
  const Value a = A(), b = f_.Argument("b", F32({4, 4}));
  Function twice("twice");
  const Value x = twice.Argument("x", F32({4, 4}));
  twice.Return("y", twice(UpdateSlice{{0, 0}}, {x, exp(x)}));
  EXPECT_FALSE(UpdateOf(twice));
  f_.Return("y", f_(UpdateSlice{{0, 0}}, {exp(a), b}));
  EXPECT_FALSE(UpdateOf(f_));
}

TEST_F(InPlaceTest, UpdatesAreTheirRegionsOnlyResult) {
  const Value a = A(), rows = f_.Argument("rows", F32({2, 4}));
  const Value y = f_(UpdateSlice{{1, 0}}, {a, rows});
  f_.Return("z", exp(y));
  EXPECT_FALSE(UpdateOf(f_));
}

TEST_F(InPlaceTest, NotAnotherType) {
  EXPECT_THAT(Overwritable(convert(A(), DType::kI32)), IsEmpty());
}

}  // namespace
}  // namespace forge::ir
