// SPDX-License-Identifier: Apache-2.0
// Regions of element-wise and movement ops.
#include "cpu_runtime/tape/tape.h"

#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/strided_gather.h"
#include "ir/ops/movement/transpose.h"
#include "tests/cpu_runtime/regions.h"

namespace forge::cpu {
namespace {

class TapeTest : public testing::Test {
 protected:
  ir::Value Argument(std::vector<int64_t> shape, DType t = DType::kF32) {
    in_.push_back(Random(t, shape, in_.size() + 1));
    return region_.Argument(ir::Type::Tensor(t, ir::Dims(shape.begin(), shape.end())));
  }
  ir::Function& f() { return region_.body(); }
  void Expect(const RunOptions& options = {}) {
    EXPECT_EQ(ExpectAgrees(region_, in_, options), "tape");
  }

  // Loads of the region whose addresses are computed element by element.
  int Gathers() {
    std::vector<Placed> sources, results;
    uint32_t operand = 0;
    for (const auto& a : f().arguments())
      sources.push_back({a.value, *ViewOf(f().type(a.value)), operand++});
    for (const auto& r : f().results())
      results.push_back({r.value, *ViewOf(f().type(r.value)), operand++});
    const absl::StatusOr<Tape> tape = Tape::Compile({f(), sources, results});
    EXPECT_TRUE(tape.ok()) << tape.status();
    return tape.ok() ? tape->gathers() : -1;
  }

  Region region_;
  std::vector<ir::HostValue> in_;
};

TEST_F(TapeTest, BroadcastsEveryWay) {
  const ir::Value a = Argument({3, 5, 700}), b = Argument({5, 1}), c = Argument({700}),
                  d = Argument({}), e = Argument({3, 1, 1});
  region_.Return((a + b) * c - d * e);
  Expect();
}

TEST_F(TapeTest, LongerThanABlockAndNoMultipleOfIt) {
  const ir::Value a = Argument({7, 1031});
  region_.Return(exp(max(a, 0.5)) * a);
  Expect();
}

TEST_F(TapeTest, UsesAValueMovedAndUnmoved) {
  const ir::Value a = Argument({40, 40});
  const ir::Value b = exp(a);
  region_.Return(b + f()(ir::Transpose{{1, 0}}, {b}));
  Expect();
}

TEST_F(TapeTest, ConcatenatesComputedParts) {
  const ir::Value a = Argument({3, 17, 5}), b = Argument({3, 4, 5}), c = Argument({3, 1, 5});
  region_.Return(f()(ir::Concat{1}, {a * 2.0, f()(ir::Relu{}, {b}), c}) + 1.0);
  Expect();
}

TEST_F(TapeTest, PadsAndCrops) {
  const ir::Value a = Argument({2, 3, 9, 11});
  region_.Return(f()(ir::Pad{{0, 1, 2, -1}, {0, 0, 3, 4}, 7}, {a * a}));
  Expect();
}

TEST_F(TapeTest, SlicesWithStepsBothWays) {
  const ir::Value a = Argument({4, 50});
  region_.Return(f()(ir::Slice{{3, 45}, {0, 2}, {0, 1}, {-1, -3}}, {a}) * 3.0);
  Expect();
}

TEST_F(TapeTest, ShufflesChannels) {
  const ir::Value a = Argument({2, 12, 3, 5});
  const ir::Value split = f()(ir::Reshape{{2, 3, 4, 3, 5}}, {a});
  const ir::Value swapped = f()(ir::Transpose{{0, 2, 1, 3, 4}}, {split});
  region_.Return(f()(ir::Relu{}, {f()(ir::Reshape{{2, 12, 3, 5}}, {swapped})}));
  Expect();
}

TEST_F(TapeTest, PadsAcrossAReshape) {
  // The seam of the pad cuts no axis of the result.
  const ir::Value a = Argument({5, 6});
  const ir::Value padded = f()(ir::Pad{{1, 1}, {0, 1}, -1}, {a});
  region_.Return(f()(ir::Reshape{{3, 16}}, {padded}) + 0.25);
  Expect();
}

TEST_F(TapeTest, ResizesToTheNearestByStrides) {
  const ir::Value a = Argument({2, 5, 6, 7}), b = Argument({2, 5, 12, 28});
  const ir::Value rows = f()(ir::StridedGather{.axis = 2, .size = 12, .divisor = 2}, {a});
  region_.Return(f()(ir::StridedGather{.axis = 3, .size = 28, .divisor = 4}, {rows}) + b);
  EXPECT_EQ(Gathers(), 0);
  Expect();
  const ir::EncodingRef last = ChannelsLast();
  Expect({.in = {last, last}, .out = {last}});
}

TEST_F(TapeTest, ShufflesPixelsByStrides) {
  const ir::Value a = Argument({2, 12, 5, 7}), b = Argument({1, 3, 1, 1});
  const ir::Value split = f()(ir::Reshape{{2, 3, 2, 2, 5, 7}}, {a});
  const ir::Value turned = f()(ir::Transpose{{0, 1, 4, 2, 5, 3}}, {split});
  region_.Return(f()(ir::Reshape{{2, 3, 10, 14}}, {turned}) + b);
  EXPECT_EQ(Gathers(), 0);
  Expect();
}

TEST_F(TapeTest, SamplesFromEveryPhaseByStrides) {
  for (const int64_t divisor : {2, 3, 4, 7})
    for (const int64_t shift : {-9, -1, 1, 2, 5})
      for (const int64_t size : {1, 5, 31}) {
        SCOPED_TRACE(fmt::format("(i + {}) / {} for {}", shift, divisor, size));
        Region region;
        const ir::Value x = region.Argument(F32({4, 9}));
        region.Return(region.body()(
            ir::StridedGather{.axis = 1, .size = size, .shift = shift, .divisor = divisor}, {x}));
        ExpectAgrees(region, {Random(DType::kF32, {4, 9}, 1)});
      }
}

// The first operand of the concat ends between two elements that the slice takes.
TEST_F(TapeTest, SlicesWithAStepAcrossTheEndOfAnOperand) {
  const ir::Value joined = f()(ir::Concat{1}, {Argument({2, 3}), Argument({2, 6})});
  region_.Return(f()(ir::Slice{{0}, {9}, {1}, {2}}, {joined}) * 2.0);
  EXPECT_EQ(Gathers(), 0);
  Expect();
}

// The place of each row in the operand is also where the reversed rows' places are counted from.
TEST_F(TapeTest, TurnsAnOperandJoinedWithItsReverse) {
  const ir::Value a = Argument({15});
  const ir::Value reverse = f()(ir::Slice{{14}, {-16}, {0}, {-1}}, {a});
  const ir::Value both = f()(ir::Concat{0}, {a, reverse});
  region_.Return(f()(ir::Transpose{{1, 0}}, {f()(ir::Reshape{{2, 15}}, {both})}));
  Expect();
}

TEST_F(TapeTest, SamplesBetweenElementsByStrides) {
  // The upper neighbours of a linear resize by 2, which begin in the middle of a period.
  const ir::Value a = Argument({3, 40});
  region_.Return(
      f()(ir::StridedGather{.axis = 1, .size = 80, .step = 2, .shift = 3, .divisor = 4}, {a}) *
      0.25);
  EXPECT_EQ(Gathers(), 0);
  Expect();
}

TEST_F(TapeTest, ReshapesByStrides) {
  // Rows of the result take turns in three axes of the operand.
  const ir::Value a = Argument({4, 6, 10, 3});
  const ir::Value turned = f()(ir::Transpose{{2, 0, 3, 1}}, {a});
  region_.Return(f()(ir::Reshape{{5, 144}}, {turned}) * 2.0);
  region_.Return(exp(f()(ir::Reshape{{720}}, {turned})));
  EXPECT_EQ(Gathers(), 0);
  Expect();
}

TEST_F(TapeTest, SpreadsElementsWithZerosByStrides) {
  const ir::Value a = Argument({2, 6, 5});
  const ir::Value apart = f()(ir::Reshape{{2, 6, 1, 5, 1}}, {a});
  const ir::Value zeros = f()(ir::Pad{{0, 0, 0, 0, 0}, {0, 0, 1, 0, 2}}, {apart});
  region_.Return(f()(ir::Reshape{{2, 12, 15}}, {zeros}));
  EXPECT_EQ(Gathers(), 0);
  Expect();
}

TEST_F(TapeTest, GathersWhereNoPeriodFits) {
  const ir::Value a = Argument({3, 7, 5});
  const ir::Value turned = f()(ir::Transpose{{2, 0, 1}}, {a});
  region_.Return(f()(ir::Reshape{{7, 15}}, {turned}));
  region_.Return(f()(ir::StridedGather{.axis = 2, .size = 8, .step = 5, .divisor = 8}, {a}));
  EXPECT_GT(Gathers(), 0);
  Expect();
}

TEST_F(TapeTest, TakesRowsOfTables) {
  const ir::Value words = Argument({50, 96}), places = Argument({11, 96});
  in_.push_back(Random(DType::kI64, {3, 11}, 7, -60, 60));  // some outside
  const ir::Value ids = region_.Argument(ir::Type::Tensor(DType::kI64, {3, 11}));
  region_.Return(f()(ir::Gather{}, {words, ids}) + places);
  EXPECT_EQ(Gathers(), 0);
  Expect();
}

TEST_F(TapeTest, TakesColumnsAndRowsThatAreComputed) {
  const ir::Value table = Argument({5, 40, 7});
  in_.push_back(Random(DType::kI32, {90}, 7, 0, 19));
  const ir::Value ids = region_.Argument(ir::Type::Tensor(DType::kI32, {90}));
  const ir::Value turned = f()(ir::Transpose{{1, 0, 2}}, {table});
  region_.Return(f()(ir::Gather{.axis = 1}, {table, ids * 2.0}) * 2.0);
  region_.Return(f()(ir::Gather{.axis = 2, .oob = ir::OutOfBounds::kClamp}, {table, ids}));
  region_.Return(f()(ir::Gather{.axis = 0}, {exp(turned), ids}));
  Expect();
}

TEST_F(TapeTest, TurnsMatricesOfEveryWidth) {
  for (const DType t : {DType::kBool, DType::kI16, DType::kF16, DType::kF32, DType::kF64})
    for (const int64_t columns : {2, 3, 4, 5, 40}) {
      Region region;
      const ir::Value x = region.Argument(ir::Type::Tensor(t, {columns, 70, 2}));
      region.Return(region.body()(ir::Transpose{{1, 0, 2}}, {x}));
      region.Return(region.body()(ir::Transpose{{2, 1, 0}}, {x}));
      ExpectAgrees(region, {Random(t, {columns, 70, 2}, 1, 0, 1)});
    }
}

TEST_F(TapeTest, SelectsByComparison) {
  const ir::Value a = Argument({6, 100}), b = Argument({100});
  region_.Return(select(a > b, a, b * 2.0));
  region_.Return(a > b);
  Expect();
}

TEST_F(TapeTest, GivesResultsOfSeveralShapes) {
  const ir::Value a = Argument({6, 8});
  region_.Return(a + 1.0);
  region_.Return(f()(ir::Reshape{{48}}, {a}) * 2.0);
  Expect();
}

TEST_F(TapeTest, ReturnsOneValueTwiceAndAnArgumentMoved) {
  const ir::Value a = Argument({6, 8});
  const ir::Value b = a * 2.0;
  region_.Return(b);
  region_.Return(b);
  region_.Return(f()(ir::Transpose{{1, 0}}, {a}));
  Expect();
}

TEST_F(TapeTest, ComputesWithChannelsLast) {
  const ir::Value a = Argument({2, 24, 5, 7}), b = Argument({2, 24, 5, 7}),
                  c = Argument({1, 24, 1, 1}), d = Argument({2, 24, 1, 1});
  region_.Return(a * d + b * c);
  const RunOptions best = BestLayouts(region_, in_);
  Expect(best);
  const ir::EncodingRef last = ChannelsLast();
  Expect({.in = {last, last, nullptr, nullptr}, .out = {last}});
  Expect({.in = {last, nullptr, nullptr, nullptr}, .out = {last}});
  Expect({.in = {last, nullptr, nullptr, nullptr}, .out = {nullptr}});
}

TEST_F(TapeTest, ComputesIntegersAndDoubles) {
  for (const DType t : {DType::kI8, DType::kU16, DType::kI64, DType::kF64, DType::kF16}) {
    Region region;
    const ir::Type type = ir::Type::Tensor(t, {3, 500});
    const ir::Value a = region.Argument(type), b = region.Argument(type);
    region.Return(convert(max(a, b) * 2.0 - a, DType::kF32));
    ExpectAgrees(region, {Random(t, {3, 500}, 1, 0, 20), Random(t, {3, 500}, 2, 0, 20)}, {}, 2e-3);
  }
}

TEST_F(TapeTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  const ir::Value a = Argument({300, 257}), b = Argument({257});
  region_.Return(exp(a) / (b * b + 1.0));
  std::vector<const ir::HostValue*> in = {&in_[0], &in_[1]};
  const auto one = RunOn(region_.op(), in, {.threads = 1});
  const auto three = RunOn(region_.op(), in, {.threads = 3});
  ASSERT_TRUE(one.ok() && three.ok()) << one.status() << three.status();
  EXPECT_TRUE(std::ranges::equal(one->results[0].bytes(), three->results[0].bytes()));
}

}  // namespace
}  // namespace forge::cpu
