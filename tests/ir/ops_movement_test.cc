// SPDX-License-Identifier: Apache-2.0
// Movement ops, reductions and windows against numbers written out by hand.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "ir/graph/interpreter.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/strided_gather.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"

namespace forge::ir {
namespace {

// 0, 1, 2 ... in the given shape.
HostValue Counting(std::vector<int64_t> shape, DType t = DType::kF32) {
  HostValue v = *HostValue::Zeros(t, shape);
  for (int64_t i = 0; i < v.elements(); ++i) v.Set(i, static_cast<double>(i));
  return v;
}

struct Result {
  std::vector<int64_t> shape;
  std::vector<double> numbers;
  friend bool operator==(const Result&, const Result&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Result& r) {
    return out << fmt::format("[{}]: {}", fmt::join(r.shape, ", "), fmt::join(r.numbers, " "));
  }
};

Result ResultOf(const AnyOp& op, const std::vector<HostValue>& in) {
  std::vector<const HostValue*> pointers;
  for (const HostValue& v : in) pointers.push_back(&v);
  const auto out = Evaluate(op, pointers);
  EXPECT_TRUE(out.ok()) << out.status();
  Result r{{(*out)[0].shape().begin(), (*out)[0].shape().end()}, {}};
  for (int64_t i = 0; i < (*out)[0].elements(); ++i) r.numbers.push_back((*out)[0].f64(i));
  return r;
}

TEST(MovementTest, ReshapeKeepsRowMajorOrder) {
  EXPECT_EQ(ResultOf(Reshape{{3, 2}}, {Counting({2, 3})}), (Result{{3, 2}, {0, 1, 2, 3, 4, 5}}));
}

TEST(MovementTest, ReshapeMapsEqualAxesDirectly) {
  auto n = std::make_shared<Symbol>(Symbol{.name = "n"});
  auto i = std::make_shared<Symbol>(Symbol{.name = "i", .max = 100});
  auto j = std::make_shared<Symbol>(Symbol{.name = "j", .max = 11});
  const Types in{Type::Tensor(DType::kF32, {Dim(n), 3, 4})};
  const AnyOp op = Reshape{{Dim(n), 12}};
  const IndexMap map = op.Map(in, {Dim(i), Dim(j)});
  ASSERT_EQ(map.pieces.size(), 1u);
  EXPECT_EQ(map.pieces[0].index, (Dims{Dim(i), FloorDiv(Dim(j), 4), Mod(Dim(j), 4)}));
}

TEST(MovementTest, TransposeMovesAxes) {
  EXPECT_EQ(ResultOf(Transpose{{1, 0}}, {Counting({2, 3})}), (Result{{3, 2}, {0, 3, 1, 4, 2, 5}}));
  EXPECT_EQ(ResultOf(Transpose{{2, 0, 1}}, {Counting({1, 2, 3})}),
            (Result{{3, 1, 2}, {0, 3, 1, 4, 2, 5}}));
}

TEST(MovementTest, BroadcastToRepeats) {
  EXPECT_EQ(ResultOf(BroadcastTo{{2, 2, 3}}, {Counting({2, 1})}),
            (Result{{2, 2, 3}, {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}}));
}

TEST(MovementTest, BackwardSliceBeginsAtAnElementAsInOnnx) {
  EXPECT_EQ(ResultOf(Slice{{-9}, {INT64_MIN}, {}, {-1}}, {Counting({6})}), (Result{{1}, {0}}));
}

TEST(MovementTest, SliceFollowsPython) {
  const HostValue x = Counting({6});
  EXPECT_EQ(ResultOf(Slice{{1}, {-1}, {}, {2}}, {x}), (Result{{2}, {1, 3}}));
  EXPECT_EQ(ResultOf(Slice{{-1}, {INT64_MIN}, {}, {-1}}, {x}), (Result{{6}, {5, 4, 3, 2, 1, 0}}));
  EXPECT_EQ(ResultOf(Slice{{4}, {-6}, {}, {-2}}, {x}), (Result{{2}, {4, 2}}));
  EXPECT_EQ(ResultOf(Slice{{0}, {INT64_MIN}, {}, {-1}}, {Counting({0})}), (Result{{0}, {}}));
  EXPECT_EQ(ResultOf(Slice{{10}, {2}, {}, {-2}}, {x}), (Result{{2}, {5, 3}}));
  EXPECT_EQ(ResultOf(Slice{{3}, {1}}, {x}), (Result{{0}, {}}));
  EXPECT_EQ(ResultOf(Slice{{-100}, {INT64_MAX}}, {x}).numbers.size(), 6u);
  EXPECT_EQ(ResultOf(Slice{{1}, {2}, {-1}}, {Counting({2, 3})}), (Result{{2, 1}, {1, 4}}));
}

TEST(MovementTest, SliceDecidesTheSignOfASymbolWhenItIsBound) {
  auto b = std::make_shared<Symbol>(Symbol{.name = "b", .min = -10, .max = 10});
  const Types in{Type::Tensor(DType::kF32, {6})};
  const AnyOp op = Slice{{Dim(b)}, {INT64_MAX}};
  const auto out = op.Infer(in);
  ASSERT_TRUE(out.ok()) << out.status();
  const Dim extent = (*out)[0].shape()[0];
  EXPECT_EQ(*extent.Evaluate({{b, 2}}), 4);
  EXPECT_EQ(*extent.Evaluate({{b, -2}}), 2);
  EXPECT_EQ(*extent.Evaluate({{b, -9}}), 6);
}

TEST(MovementTest, ConcatJoins) {
  EXPECT_EQ(ResultOf(Concat{1}, {Counting({2, 1}), Counting({2, 2})}),
            (Result{{2, 3}, {0, 0, 1, 1, 2, 3}}));
}

TEST(MovementTest, PadSurroundsAndCrops) {
  EXPECT_EQ(ResultOf(Pad{{1, -1}, {0, 1}, 9}, {Counting({2, 3})}),
            (Result{{3, 3}, {9, 9, 9, 1, 2, 9, 4, 5, 9}}));
}

TEST(MovementTest, TakeSelectsSlices) {
  HostValue i = *HostValue::Zeros(DType::kI64, std::array<int64_t, 3>{2, 1, 2});
  const std::array<int64_t, 4> numbers = {-1, 0, 3, -4};
  for (int64_t k = 0; k < 4; ++k) i.SetI64(k, numbers[static_cast<size_t>(k)]);
  EXPECT_EQ(ResultOf(Gather{.axis = 1}, {Counting({1, 3}), i}),
            (Result{{1, 2, 1, 2}, {2, 0, 0, 0}}));
  EXPECT_EQ(ResultOf(Gather{.axis = 1, .oob = OutOfBounds::kClamp}, {Counting({1, 3}), i}),
            (Result{{1, 2, 1, 2}, {2, 0, 2, 0}}));
}

TEST(MovementTest, IotaCounts) {
  EXPECT_EQ(ResultOf(Iota{.begin = -3, .step = 2, .count = 4}, {}), (Result{{4}, {-3, -1, 1, 3}}));
  EXPECT_EQ(ResultOf(Iota{.dtype = DType::kF32, .begin = -3, .count = 4, .modulus = 3}, {}),
            (Result{{4}, {0, 1, 2, 0}}));
}

TEST(MovementTest, SampleRepeatsAndClamps) {
  EXPECT_EQ(ResultOf(StridedGather{.size = 6, .shift = -1, .divisor = 2}, {Counting({2})}),
            (Result{{6}, {0, 0, 0, 1, 1, 1}}));
}

TEST(MovementTest, FillConvertsAsCastDoes) {
  EXPECT_EQ(ResultOf(Fill{300.7, DType::kU8, {2}}, {}), (Result{{2}, {255, 255}}));
  EXPECT_EQ(ResultOf(Fill{-2.5, DType::kI32, {1}}, {}), (Result{{1}, {-2}}));
}

TEST(MovementTest, NumbersBeyondADoubleAreExact) {
  const auto first = [](const AnyOp& op, std::span<const HostValue* const> in) {
    const auto out = Evaluate(op, in);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? out->at(0).number(0) : Number(NAN);
  };
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(first(Fill{kOdd, DType::kI64, {2}}, {}), kOdd);
  EXPECT_EQ(first(Fill{UINT64_MAX, DType::kU64, {2}}, {}), UINT64_MAX);
  const HostValue x = Counting({2}, DType::kI64);
  const HostValue* in[] = {&x};
  EXPECT_EQ(first(Pad{{1}, {0}, -kOdd}, in), -kOdd);
}

TEST(ReduceTest, OverNothingGivesTheNeutralElement) {
  const HostValue x = Counting({2, 0});
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ResultOf(Reduce{ReduceKind::kSum, {1}}, {x}), (Result{{2, 1}, {0, 0}}));
  EXPECT_EQ(ResultOf(Reduce{ReduceKind::kMax, {1}}, {x}), (Result{{2, 1}, {-inf, -inf}}));
  EXPECT_EQ(ResultOf(Reduce{ReduceKind::kProd, {1}, false}, {x}), (Result{{2}, {1, 1}}));
  EXPECT_EQ(ResultOf(Reduce{ReduceKind::kMin, {1}, false}, {Counting({1, 0}, DType::kI8)}),
            (Result{{1}, {127}}));
  EXPECT_TRUE(std::isnan(ResultOf(Reduce{ReduceKind::kMean, {1}}, {x}).numbers[0]));
}

TEST(ReduceTest, AxesMayBeNegativeAndDropped) {
  EXPECT_EQ(ResultOf(Reduce{ReduceKind::kSum, {-2}, false}, {Counting({2, 3})}),
            (Result{{3}, {3, 5, 7}}));
  EXPECT_EQ(ResultOf(Reduce{ReduceKind::kMean, {}, false}, {Counting({2, 3})}),
            (Result{{}, {2.5}}));
}

TEST(MatMulTest, TransposesAndBroadcasts) {
  const HostValue a = Counting({2, 3}), b = Counting({3, 2});
  EXPECT_EQ(ResultOf(MatMul{}, {a, b}), (Result{{2, 2}, {10, 13, 28, 40}}));
  EXPECT_EQ(ResultOf(MatMul{false, true}, {a, a}), (Result{{2, 2}, {5, 14, 14, 50}}));
  EXPECT_EQ(ResultOf(MatMul{true, false}, {a, a}),
            (Result{{3, 3}, {9, 12, 15, 12, 17, 22, 15, 22, 29}}));
  EXPECT_EQ(ResultOf(MatMul{}, {Counting({2, 1, 2}), Counting({2, 1})}),
            (Result{{2, 1, 1}, {1, 3}}));
}

TEST(ConvTest, PadsStridesAndGroups) {
  const HostValue x = Counting({1, 1, 3, 3});
  const HostValue ones = *[] {
    auto v = HostValue::Zeros(DType::kF32, std::vector<int64_t>{1, 1, 2, 2});
    for (int64_t i = 0; i < 4; ++i) v->Set(i, 1);
    return v;
  }();
  EXPECT_EQ(ResultOf(Conv{}, {x, ones}), (Result{{1, 1, 2, 2}, {8, 12, 20, 24}}));
  EXPECT_EQ(ResultOf(Conv{.strides = {2, 2}, .padding = {1, 1, 0, 0}}, {x, ones}),
            (Result{{1, 1, 2, 2}, {0, 3, 9, 24}}));
  EXPECT_EQ(ResultOf(Conv{.dilations = {2, 2}}, {x, ones}), (Result{{1, 1, 1, 1}, {16}}));
  EXPECT_EQ(ResultOf(Conv{.padding = {-1, 0, 0, 0}}, {x, ones}), (Result{{1, 1, 1, 2}, {20, 24}}));
  EXPECT_EQ(
      ResultOf(Conv{.groups = 2}, {Counting({1, 2, 1, 2}), Counting({2, 1, 1, 1}), Counting({2})}),
      (Result{{1, 2, 1, 2}, {0, 0, 3, 4}}));
}

TEST(ConvTest, SlidesOverSignalsAndVolumes) {
  EXPECT_EQ(ResultOf(Conv{.strides = {2}, .padding = {1, 0}},
                     {Counting({1, 1, 4}), Counting({2, 1, 2}), Counting({2})}),
            (Result{{1, 2, 2}, {0, 2, 1, 9}}));
  // Two planes of one row: 0 1 2 and 3 4 5.
  EXPECT_EQ(ResultOf(Conv{.dilations = {1, 1, 2}},
                     {Counting({1, 1, 2, 1, 3}), Counting({1, 1, 2, 1, 2})}),
            (Result{{1, 1, 1, 1, 1}, {2 + 2 * 3 + 3 * 5}}));
}

TEST(PoolTest, SlidesOverSignalsAndVolumes) {
  EXPECT_EQ(ResultOf(Pool{.kernel = {2}, .strides = {2}, .padding = {1, 1}}, {Counting({1, 1, 4})}),
            (Result{{1, 1, 3}, {0, 2, 3}}));
  EXPECT_EQ(
      ResultOf(Pool{.kind = PoolKind::kAverage, .kernel = {2, 1, 2}}, {Counting({1, 1, 2, 2, 2})}),
      (Result{{1, 1, 1, 2, 1}, {2.5, 4.5}}));
}

TEST(PoolTest, CeilModeCountsIncompleteWindowsThatBeginInside) {
  const Pool ceil{.kernel = {2, 2}, .strides = {2, 2}, .ceil_mode = true};
  EXPECT_EQ(ResultOf(ceil, {Counting({1, 1, 3, 3})}), (Result{{1, 1, 2, 2}, {4, 5, 7, 8}}));
  // A third window would begin in the padding behind the elements.
  const Pool padded{
      .kernel = {2, 2}, .strides = {2, 2}, .padding = {1, 1, 1, 1}, .ceil_mode = true};
  EXPECT_EQ(ResultOf(padded, {Counting({1, 1, 2, 2})}), (Result{{1, 1, 2, 2}, {0, 1, 2, 3}}));
}

TEST(PoolTest, MeansCountPaddingOnlyWhereAsked) {
  Pool mean{.kind = PoolKind::kAverage,
            .kernel = {2, 2},
            .strides = {2, 2},
            .padding = {1, 1, 0, 0},
            .ceil_mode = true};
  const HostValue x = Counting({1, 1, 2, 2});  // 0 1 / 2 3
  EXPECT_EQ(ResultOf(mean, {x}), (Result{{1, 1, 2, 2}, {0, 1, 2, 3}}));
  mean.count_include_pad = true;
  // The last window of each axis reaches beyond the padding: those positions never count.
  EXPECT_EQ(ResultOf(mean, {x}), (Result{{1, 1, 2, 2}, {0, 0.5, 1, 3}}));
}

}  // namespace
}  // namespace forge::ir
