// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/matmul.h"

#include "cpu_runtime/onednn/packed.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul_integer.h"
#include "tests/cpu_runtime/regions.h"

namespace forge::cpu {
namespace {

class IntegerProductTest : public testing::TestWithParam<std::pair<DType, DType>> {};

ir::HostValue Filled(DType t, std::vector<int64_t> shape, int64_t even, int64_t odd) {
  ir::HostValue v = *ir::HostValue::Zeros(t, shape);
  for (int64_t i = 0; i < v.elements(); ++i) v.SetI64(i, i % 2 == 0 ? even : odd);
  return v;
}

// Extremes of both types, whose sums neither f32 nor pairs of products in 16 bits hold.
TEST_P(IntegerProductTest, IsExact) {
  constexpr int64_t kM = 11, kK = 4099, kN = 37;
  const auto [a_type, b_type] = GetParam();
  const auto extremes = [](DType t) {
    return t == DType::kU8 ? std::pair<int64_t, int64_t>(255, 254)
                           : std::pair<int64_t, int64_t>(-128, 127);
  };
  const auto [a_even, a_odd] = extremes(a_type);
  const auto [b_even, b_odd] = extremes(b_type);
  const ir::HostValue a = Filled(a_type, {kM, kK}, a_even, a_odd);
  const ir::HostValue b = Filled(b_type, {kK, kN}, b_even, b_odd);
  const ir::HostValue* in[] = {&a, &b};
  const absl::StatusOr<RunResult> run = RunOn(ir::MatMulInteger{}, in);
  ASSERT_TRUE(run.ok()) << run.status();
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < kK; ++k) sum += a.i64(i * kK + k) * b.i64(k * kN + j);
      ASSERT_EQ(run->results[0].i64(i * kN + j), sum) << i << ", " << j << ", " << run->kernel;
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, IntegerProductTest,
    testing::Values(std::pair(DType::kU8, DType::kI8), std::pair(DType::kI8, DType::kI8),
                    std::pair(DType::kU8, DType::kU8), std::pair(DType::kI8, DType::kU8)),
    [](const auto& p) {
      return std::string(Name(p.param.first)) + "_" + std::string(Name(p.param.second));
    });

// Whose batch is joined with the rows where the addend allows it.
TEST(MatMulTest, AddsWhatBroadcasts) {
  for (const std::vector<int64_t>& addend : std::vector<std::vector<int64_t>>{
           {5}, {1}, {4, 1}, {1, 5}, {4, 5}, {3, 1, 1}, {3, 4, 1}, {3, 1, 5}, {3, 4, 5}, {1, 4, 5}})
    for (const int64_t batch : {1, 3}) {
      if (batch == 1 && addend.size() == 3 && addend[0] != 1) continue;
      Region region;
      const std::vector<int64_t> shape = {batch, 4, 7};
      const ir::Value a = region.Argument(ir::Type::Tensor(DType::kF32, {batch, 4, 7}));
      const ir::Value b = region.Argument(ir::Type::Tensor(DType::kF32, {7, 5}));
      const ir::Dims dims(addend.begin(), addend.end());
      const ir::Value c = region.Argument(ir::Type::Tensor(DType::kF32, dims));
      region.Return(region.body()(ir::MatMul{}, {a, b}) + c);
      SCOPED_TRACE(fmt::format("batch {}, addend {}", batch, fmt::join(addend, "x")));
      ExpectAgrees(region, {Random(DType::kF32, shape, 1), Random(DType::kF32, {7, 5}, 2),
                            Random(DType::kF32, addend, 3)});
    }
}

// Of one term and of one column, with rows and depth either way around.
TEST(MatMulTest, TakesMatricesOfOneColumn) {
  for (const auto& [depth, columns] : {std::pair<int64_t, int64_t>(1, 5), {6, 1}, {1, 1}})
    for (const bool transposed : {false, true}) {
      Region region;
      const std::vector<int64_t> shape =
          transposed ? std::vector<int64_t>{7, depth, 2} : std::vector<int64_t>{7, 2, depth};
      const ir::Value a =
          region.Argument(ir::Type::Tensor(DType::kF32, ir::Dims(shape.begin(), shape.end())));
      const ir::Value b = region.Argument(ir::Type::Tensor(DType::kF32, {columns, depth}));
      const ir::MatMul op{.transpose_a = transposed, .transpose_b = true};
      region.Return(region.body()(op, {a, b}) * 1.5);
      SCOPED_TRACE(fmt::format("depth {}, columns {}, {}", depth, columns, transposed));
      const std::vector<ir::HostValue> in = {Random(DType::kF32, shape, 1),
                                             Random(DType::kF32, {columns, depth}, 2)};
      ExpectAgrees(region, in);
      ExpectAgrees(region, in, BestLayouts(region, in));
    }
}

// Packed once, rather than widened at each run.
TEST(MatMulTest, PacksHalvesAsFloats) {
  for (const DType t : {DType::kF16, DType::kBF16}) {
    Region region;
    const ir::Value a = region.Argument(ir::Type::Tensor(t, {3, 64})),
                    b = region.Argument(ir::Type::Tensor(t, {64, 48}));
    region.Return(region.body()(ir::MatMul{}, {a, b}));
    const std::vector<ir::HostValue> in = {Random(t, {3, 64}, 1), Random(t, {64, 48}, 2)};
    const RunOptions best = BestLayouts(region, in);
    ASSERT_EQ(best.in.size(), 2);
    ASSERT_TRUE(best.in[1]);
    EXPECT_GE(best.in[1]->Bytes(t, {64, 48})->constant(), 64 * 48 * 4);
    const double tolerance = t == DType::kF16 ? 2e-3 : 2e-2;
    ExpectAgrees(region, in, {}, tolerance);
    ExpectAgrees(region, in, best, tolerance);
  }
}

TEST(PackedEncodingTest, UnpacksToTheTypeOfTheTensor) {
  const ir::EncodingRef columns_first = PackedEncoding::Make(
      DescOf(DenseView(DType::kF32, {2, 3})), DescOf(View{DType::kF32, {2, 3}, {1, 2}}));
  const float packed[] = {1, 4, 2, 5, 3, -6.5};
  const std::span<const uint8_t> in(reinterpret_cast<const uint8_t*>(packed), sizeof(packed));
  const int64_t shape[] = {2, 3};
  for (const DType t : {DType::kF16, DType::kBF16, DType::kF32}) {
    ir::HostValue out = *ir::HostValue::Zeros(t, shape);
    ASSERT_TRUE(columns_first->Decode(t, shape, in, out.mutable_bytes()).ok());
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(out.f64(i), i < 5 ? double(i + 1) : -6.5);
    EXPECT_FALSE(columns_first->Decode(t, shape, in, out.mutable_bytes().first(8)).ok());
  }
}

}  // namespace
}  // namespace forge::cpu
