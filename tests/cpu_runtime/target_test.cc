// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "ir/ops/compiler/relayout.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "tests/cpu_runtime/regions.h"

namespace forge::cpu {
namespace {

using testing::HasSubstr;

Verdict Supports(const ir::AnyOp& op, const ir::Types& in) {
  const ir::Types out = *op.Infer(in);
  return OpenCpu()->target().Supports({op, in, out});
}

TEST(CpuTargetTest, RefusesElementsNarrowerThanAByte) {
  const ir::Type t = ir::Type::Tensor(DType::kI4, {2, 2});
  EXPECT_THAT(Supports(ir::Transpose{{1, 0}}, {t}).text(), HasSubstr("i4 are not whole bytes"));
}

TEST(CpuTargetTest, RefusesAnOperandComputedBeforeTheAnchor) {
  Region region;
  const ir::Value x = region.Argument(F32({4, 8}));
  region.Return(region.body()(ir::Softmax{}, {exp(x)}));
  EXPECT_THAT(OpenCpu()->target().Fuses(region.body()).text(),
              HasSubstr("softmax takes no operand that is computed"));
}

TEST(CpuTargetTest, RefusesMovementAfterTheAnchor) {
  Region region;
  const ir::Value x = region.Argument(F32({4, 8}));
  region.Return(region.body()(ir::Transpose{{1, 0}}, {region.body()(ir::Softmax{}, {x})}));
  EXPECT_THAT(OpenCpu()->target().Fuses(region.body()).text(),
              HasSubstr("transpose after softmax is not element-wise"));
}

TEST(CpuTargetTest, PacksNoOperandThatTheEpilogueReadsToo) {
  Region region;
  const ir::Value x = region.Argument(F32({64, 64})), w = region.Argument(F32({64, 64}));
  region.Return(region.body()(ir::MatMul{}, {x, w}) + w);
  const std::vector<ir::HostValue> in = {Random(DType::kF32, {64, 64}, 1),
                                         Random(DType::kF32, {64, 64}, 2)};
  ExpectAgrees(region, in, BestLayouts(region, in), 1e-4);
}

// Few channels, and many, in either layout.
TEST(CpuTargetTest, AddsATensorToMeansOfWindows) {
  for (const int64_t channels : {1, 3, 4, 8, 13, 16, 40}) {
    SCOPED_TRACE(channels);
    Region region;
    const std::vector<int64_t> shape = {5, channels, 4, 4};
    const ir::Value x = region.Argument(F32({5, channels, 4, 4})),
                    z = region.Argument(F32({5, channels, 4, 4}));
    const ir::Pool mean{.kind = ir::PoolKind::kAverage, .kernel = {3, 3}, .padding = {1, 1, 1, 1}};
    region.Return(region.body()(mean, {x}) + z);
    const std::vector<ir::HostValue> in = {Random(DType::kF32, shape, 1),
                                           Random(DType::kF32, shape, 2)};
    ExpectAgrees(region, in);
    ExpectAgrees(region, in, {.in = {ChannelsLast(), ChannelsLast()}, .out = {ChannelsLast()}});
  }
}

TEST(CpuTargetTest, ConcatenatesHundreds) {
  Region region;
  std::vector<ir::HostValue> in;
  ir::Values parts;
  for (int i = 0; i < 210; ++i) {
    in.push_back(Random(DType::kF32, {3, 1 + i % 4}, static_cast<uint64_t>(i)));
    parts.push_back(tanh(region.Argument(in.back().type())));
  }
  region.Return(region.body().Add(ir::Concat{1}, parts)[0]);
  EXPECT_EQ(ExpectAgrees(region, in), "tape");
}

TEST(CpuTargetTest, RefusesMoreOperandsThanATapeTakes) {
  ir::Types many(600, F32({1}));
  EXPECT_THAT(Supports(ir::Concat{0}, many).text(), HasSubstr("a tape takes at most 512"));
}

TEST(CpuTargetTest, JudgesBeforeDimensionsAreNumbers) {
  const auto n = std::make_shared<ir::Symbol>(ir::Symbol{.name = "n", .min = 1});
  Region region;
  const ir::Value x = region.Argument(F32({ir::Dim(n), 8})), w = region.Argument(F32({8, 4}));
  region.Return(region.body()(ir::Relu{}, {region.body()(ir::MatMul{}, {x, w})}));
  const Verdict v = OpenCpu()->target().Fuses(region.body());
  EXPECT_TRUE(v) << v.text();
}

TEST(CpuTargetTest, TakesReductionsAndSoftmaxInEitherLayout) {
  for (const int64_t axis : {1, 2, 3}) {
    Region reduce, softmax;
    const ir::Value x = reduce.Argument(F32({2, 5, 6, 7})), z = softmax.Argument(F32({2, 5, 6, 7}));
    reduce.Return(reduce.body()(ir::Reduce{ir::ReduceKind::kMean, {axis}}, {x}) * 2.0);
    softmax.Return(softmax.body()(ir::Softmax{axis}, {z}));
    const std::vector<ir::HostValue> in = {Random(DType::kF32, {2, 5, 6, 7}, 1)};
    const ir::EncodingRef last = ChannelsLast();
    for (const Region* r : {&reduce, &softmax}) {
      ExpectAgrees(*r, in);
      ExpectAgrees(*r, in, {.in = {last}, .out = {last}});
    }
  }
}

TEST(CpuTargetTest, GivesMaskedElementsOfASoftmaxNoDenormals) {
  for (const int64_t axis : {0, 1}) {
    Region region;
    const ir::Value x = region.Argument(F32({40, 40}));
    region.Return(region.body()(ir::Softmax{axis}, {x}));
    ir::HostValue in = Random(DType::kF32, {40, 40}, 1, -100, -90);
    for (int64_t i = 0; i < 40; ++i) in.Set(i * 41, 0);
    ExpectAgrees(region, {in});
    const ir::HostValue* pointers[] = {&in};
    const auto got = RunOn(region.op(), pointers);
    ASSERT_TRUE(got.ok()) << got.status();
    for (int64_t i = 0; i < 40 * 40; ++i)
      EXPECT_EQ(got->results[0].f64(i), i % 41 == 0 ? 1.0 : 0.0) << i;
  }
}

TEST(CpuTargetTest, NormalisesLayersInOneKernel) {
  for (const int64_t length : {1, 3, 31, 384, 1000}) {
    Region region;
    const ir::Value x = region.Argument(F32({7, length})), gamma = region.Argument(F32({length})),
                    beta = region.Argument(F32({1}));
    region.Return(region.body()(ir::LayerNorm{}, {x, gamma, beta}) * 2.0);
    const std::vector<ir::HostValue> in = {Random(DType::kF32, {7, length}, 1),
                                           Random(DType::kF32, {length}, 2),
                                           Random(DType::kF32, {1}, 3)};
    EXPECT_EQ(ExpectAgrees(region, in), "layer_norm");
  }
}

TEST(CpuTargetTest, NormalisesByRootMeanSquaresInOneKernel) {
  for (const int64_t length : {1, 31, 128}) {
    Region region;
    const ir::Value x = region.Argument(F32({7, length})), gamma = region.Argument(F32({length}));
    region.Return(region.body()(ir::LayerNorm{.subtract_mean = false}, {x, gamma}));
    EXPECT_EQ(ExpectAgrees(region,
                           {Random(DType::kF32, {7, length}, 1), Random(DType::kF32, {length}, 2)}),
              "layer_norm");
  }
}

TEST(CpuTargetTest, JoinsTheBatchOfAProductWithOneMatrix) {
  Region region;
  const ir::Value a = region.Argument(F32({3, 4, 5})), b = region.Argument(F32({5, 6})),
                  bias = region.Argument(F32({6})), r = region.Argument(F32({3, 1, 6}));
  region.Return(region.body()(ir::MatMul{}, {a, b}) + bias);
  const std::vector<ir::HostValue> in = {
      Random(DType::kF32, {3, 4, 5}, 1), Random(DType::kF32, {5, 6}, 2),
      Random(DType::kF32, {6}, 3), Random(DType::kF32, {3, 1, 6}, 4)};
  ExpectAgrees(region, in);
  ExpectAgrees(region, in, BestLayouts(region, in));
  Region other;
  const ir::Value c = other.Argument(F32({3, 4, 5})), d = other.Argument(F32({5, 6})),
                  unused = other.Argument(F32({6})), s = other.Argument(F32({3, 1, 6}));
  other.Return(other.body()(ir::MatMul{}, {c, d}) * s);
  ExpectAgrees(other, in);
  ExpectAgrees(other, in, BestLayouts(other, in));
  (void)r, (void)unused;
}

TEST(CpuTargetTest, PermutesAndBackWithEveryElementWidth) {
  for (const DType t : {DType::kBool, DType::kI16, DType::kF32, DType::kF64, DType::kC128}) {
    const ir::Type dense = ir::Type::Tensor(t, {2, 3, 4, 5}), last = dense.With(ChannelsLast());
    const ir::HostValue in = t == DType::kC128
                                 ? *ir::HostValue::Zeros(t, std::vector<int64_t>{2, 3, 4, 5})
                                 : Random(t, {2, 3, 4, 5}, 9, 0, 100);
    const ir::HostValue* pointers[] = {&in};
    // There and back: the helper lays the operand out and the result back.
    const auto got = RunOn(ir::Relayout{dense}, pointers, {.in = {ChannelsLast()}});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(std::ranges::equal(in.bytes(), got->results[0].bytes())) << Name(t);
  }
}

TEST(CpuDeviceTest, NamesTheProcessor) {
  const auto device = OpenCpu();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.id, "cpu:0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_THAT(info.driver, testing::StartsWith("oneDNN 3."));
  EXPECT_GT(info.memory_bytes, uint64_t{1} << 20);
  EXPECT_TRUE(info.is_cpu);
}

TEST(CpuDeviceTest, RefusesASecondProcessor) {
  const auto device = CpuDriver().Open(1, {});
  EXPECT_EQ(device.status().code(), absl::StatusCode::kNotFound);
}

TEST(CpuDeviceTest, RunsOneProgramInSeveralThreadsAtOnce) {
  const auto device = OpenCpu(1);
  const ir::Types in = {F32({1, 8, 16, 16}), F32({8, 8, 3, 3})};
  const ir::AnyOp op = ir::Conv{};
  const ir::Types out = *op.Infer(in);
  const CompileRequest request{&op, in, out, "conv"};
  const auto program = std::move(device->Compile({&request, 1}, [](size_t) { return true; })[0]);
  ASSERT_TRUE(program.ok()) << program.status();
  const ir::HostValue x = Random(DType::kF32, {1, 8, 16, 16}, 1),
                      w = Random(DType::kF32, {8, 8, 3, 3}, 2);
  std::vector<std::vector<float>> results(4, std::vector<float>(8 * 14 * 14));
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] {
      std::vector<uint8_t> scratch((*program)->scratch_bytes() + 64);
      uint8_t* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
      for (int i = 0; i < 20; ++i) {
        auto bytes = [](const ir::HostValue& v) {
          return std::span(const_cast<uint8_t*>(v.bytes().data()), v.bytes().size());
        };
        const std::span<uint8_t> operands[] = {
            bytes(x),
            bytes(w),
            {reinterpret_cast<uint8_t*>(result.data()), result.size() * sizeof(float)},
            {aligned, (*program)->scratch_bytes()}};
        EXPECT_TRUE(static_cast<const HostProgram&>(**program).Run({operands, {}}).ok());
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace forge::cpu
