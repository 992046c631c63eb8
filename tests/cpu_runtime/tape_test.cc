// SPDX-License-Identifier: Apache-2.0
// Regions of element-wise and movement ops.
#include "ir/ops/broadcast_to.h"
#include "ir/ops/concat.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/pad.h"
#include "ir/ops/reshape.h"
#include "ir/ops/slice.h"
#include "ir/ops/transpose.h"
#include "ir/scalar_math.h"
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
