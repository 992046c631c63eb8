// SPDX-License-Identifier: Apache-2.0
// What the drawn operands of the cases do not reach: indices and offsets with a meaning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/interpreter.h"
#include "ir/op/elements.h"
#include "ir/ops/indexing/embedding.h"
#include "ir/ops/indexing/embedding_bag.h"
#include "ir/ops/indexing/index.h"
#include "ir/ops/indexing/scatter_nd.h"
#include "ir/ops/pooling/max_pool.h"
#include "ir/ops/sampling/roi_align.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

HostValue Whole(std::vector<int64_t> shape, std::vector<int64_t> numbers) {
  HostValue v = *HostValue::Zeros(DType::kI64, shape);
  for (size_t i = 0; i < numbers.size(); ++i) v.SetI64(static_cast<int64_t>(i), numbers[i]);
  return v;
}

std::vector<double> ElementsOf(const AnyOp& op, const std::vector<HostValue>& in) {
  std::vector<const HostValue*> operands;
  for (const HostValue& v : in) operands.push_back(&v);
  const auto y = Evaluate(op, operands);
  EXPECT_THAT(y.status(), Succeeds());
  return y.ok() ? Numbers((*y)[0]) : std::vector<double>();
}

const HostValue kTable = Tensor({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});

TEST(EmbeddingBagTest, BagsBeginAtTheirOffsets) {
  const HostValue indices = Whole({5}, {1, 2, 0, 3, 3}), offsets = Whole({4}, {0, 2, 2, 4});
  EXPECT_THAT(ElementsOf(EmbeddingBag{.kind = ReduceKind::kSum}, {kTable, indices, offsets}),
              ElementsAre(30, 32, 0, 0, 30, 32, 30, 31));
  EXPECT_THAT(ElementsOf(EmbeddingBag{.kind = ReduceKind::kMean}, {kTable, indices, offsets}),
              ElementsAre(15, 16, 0, 0, 15, 16, 30, 31));
  EXPECT_THAT(ElementsOf(EmbeddingBag{.kind = ReduceKind::kMax}, {kTable, indices, offsets}),
              ElementsAre(20, 21, 0, 0, 30, 31, 30, 31));
}

TEST(EmbeddingBagTest, WhatFollowsTheLastOffsetIsInNoBag) {
  const EmbeddingBag op{.kind = ReduceKind::kSum, .include_last_offset = true};
  EXPECT_THAT(ElementsOf(op, {kTable, Whole({5}, {1, 2, 0, 3, 3}), Whole({3}, {0, 1, 4})}),
              ElementsAre(10, 11, 50, 53));
}

TEST(EmbeddingBagTest, SumsAreScaled) {
  const EmbeddingBag op{.kind = ReduceKind::kSum};
  EXPECT_THAT(ElementsOf(op, {kTable, Whole({3}, {1, 2, 3}), Whole({2}, {0, 2}),
                              Tensor({3}, {2, -1, 0.5})}),
              ElementsAre(0, 1, 15, 15.5));
}

TEST(EmbeddingBagTest, PaddingIsInNoBag) {
  EXPECT_THAT(ElementsOf(EmbeddingBag{.padding = 3},
                         {kTable, Whole({4}, {1, 3, 3, -1}), Whole({2}, {0, 2})}),
              ElementsAre(10, 11, 0, 0));
}

// The gradient of the table where the cotangent is 1 everywhere.
std::vector<double> TableGradient(const Embedding& op, const std::vector<int64_t>& indices) {
  const auto count = static_cast<int64_t>(indices.size());
  Function f("f");
  const Value w = f.Argument("w", F32({4, 2}));
  const Value i = f.Argument("i", Type::Tensor(DType::kI64, {count}));
  const Value dy = f.Argument("dy", F32({count, 2}));
  const Values in = {w, i}, y = {f(op, {w, i})};
  f.Return("dw", AnyOp(op).Gradient({f, in, y, {&dy, 1}})[0]);
  const HostValue given = Whole({count}, indices);
  const HostValue ones = Tensor({count, 2}, std::vector<double>(indices.size() * 2, 1));
  const HostValue* arguments[] = {&kTable, &given, &ones};
  const auto got = Interpreter{}.Run(f, arguments);
  EXPECT_THAT(got.status(), Succeeds());
  return got.ok() ? Numbers(got->results[0]) : std::vector<double>();
}

TEST(EmbeddingTest, PaddingGetsNoGradient) {
  EXPECT_THAT(TableGradient({.padding = 2}, {2, 1, -2, 1, 3}), ElementsAre(0, 0, 2, 2, 0, 0, 1, 1));
}

TEST(EmbeddingTest, GradientsAreScaledByHowOftenARowIsTaken) {
  EXPECT_THAT(TableGradient({.scale_gradient = true}, {2, 1, -2, 1, 1, 3}),
              ElementsAre(0, 0, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(TableGradient({.padding = 1, .scale_gradient = true}, {2, 1, 2, 3}),
              ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

TEST(EmbeddingRenormTest, RowsThatAreLongEnoughAreScaledOnce) {
  const std::vector<double> y =
      ElementsOf(EmbeddingRenorm{.max_norm = 5},
                 {Tensor({3, 2}, {6, 8, 3, 4, 60, 80}), Whole({3}, {0, 0, 1})});
  EXPECT_THAT(y, ElementsAreArray({testing::DoubleNear(3, 1e-6), testing::DoubleNear(4, 1e-6),
                                   testing::DoubleEq(3), testing::DoubleEq(4),
                                   testing::DoubleEq(60), testing::DoubleEq(80)}));
}

TEST(ScatterTest, DropsWhatLiesOutsideAndKeepsTheLast) {
  EXPECT_THAT(
      ElementsOf(Scatter{}, {Tensor({3}, {1, 2, 3}), Whole({6}, {0, -1, 3, -4, 0, INT64_MIN}),
                             Tensor({6}, {4, 5, 6, 7, 8, 9})}),
      ElementsAre(8, 2, 5));
}

TEST(ScatterNdTest, DropsIndicesOfWhichOneLiesOutside) {
  // [0, 3] is no element, though its place in row-major order would be one.
  EXPECT_THAT(ElementsOf(ScatterNd{}, {Tensor({2, 3}, {}), Whole({3, 2}, {0, 3, 1, -1, -3, 2}),
                                       Tensor({3}, {1, 2, 3})}),
              ElementsAre(0, 0, 0, 0, 0, 2));
}

TEST(MaxPoolTest, NamesTheFirstOfEqualElementsAndTheLastNan) {
  const auto indices_of = [](const MaxPool& op, const HostValue& x) {
    const HostValue* in[] = {&x};
    const auto y = Evaluate(op, in);
    EXPECT_THAT(y.status(), Succeeds());
    return y.ok() ? Integers((*y)[1]) : std::vector<int64_t>();
  };
  EXPECT_THAT(indices_of({.kernel = {2, 3}}, Tensor({1, 1, 2, 4}, {1, 5, 5, 2, 5, 0, 5, 5})),
              ElementsAre(1, 1));
  EXPECT_THAT(indices_of({.kernel = {2, 2}}, Tensor({1, 1, 2, 2}, {kNan, 9, kNan, 9})),
              ElementsAre(2));
  // An element counts where it is the lowest there is, padding never.
  EXPECT_THAT(indices_of({.kernel = {3}, .padding = {2, 2}}, Tensor({1, 1, 2}, {-kInf, -kInf})),
              ElementsAre(0, 0, 0, 1));
}

TEST(IndexTest, AxesOfIndicesStandWhereAdjacentAxesWere) {
  const auto shape_of = [](std::vector<int64_t> axes) {
    const Type x = F32({2, 3, 4, 5}), i = Type::Tensor(DType::kI64, {7});
    return (*AnyOp(IndexOp{std::move(axes)}).Infer(Types{x, i, i}))[0].shape();
  };
  EXPECT_EQ(shape_of({1, 2}), (Dims{2, 7, 5}));
  EXPECT_EQ(shape_of({1, 3}), (Dims{7, 2, 4}));
}

TEST(RoiAlignTest, BoxesOfNoImageGiveZeros) {
  const HostValue x = Tensor({2, 1, 2, 2}, {1, 1, 1, 1, 5, 5, 5, 5});
  const HostValue boxes = Tensor({4, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  EXPECT_THAT(ElementsOf(RoiAlign{}, {x, boxes, Whole({4}, {-1, 2, -3, 0})}),
              ElementsAre(5, 0, 0, 1));
}

// The parts once copied the image of each box.
TEST(RoiAlignTest, BoxesShareTheirImages) {
  constexpr int64_t kImage = 2 * 3 * 100 * 100, kPoints = 50 * 3 * 7 * 7 * 4;
  Function f("f");
  const Values in = {f.Argument("x", Type::Tensor(DType::kF32, {2, 3, 100, 100})),
                     f.Argument("boxes", Type::Tensor(DType::kF32, {50, 4})),
                     f.Argument("batch", Type::Tensor(DType::kI64, {50}))};
  AnyOp(RoiAlign{.sizes = {7, 7}, .samples = 2}).Decompose(f, in);
  ASSERT_THAT(f.status(), Succeeds());
  for (uint32_t v = 0; v < f.value_count(); ++v)
    EXPECT_LE(f.type(v).elements().constant(), std::max(kImage, kPoints)) << f.type(v).ToText();
}

}  // namespace
}  // namespace forge::ir
