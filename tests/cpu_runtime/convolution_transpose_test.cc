// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/spatial/conv_transpose.h"
#include "tests/cpu_runtime/regions.h"

namespace forge::cpu {
namespace {

using testing::HasSubstr;

// An upscaling by 2 of 8 to 16 channels.
class ConvolutionTransposeTest : public testing::Test {
 protected:
  ir::Value Argument(std::vector<int64_t> shape) {
    in_.push_back(Random(DType::kF32, shape, in_.size() + 1));
    return region_.Argument(F32(ir::Dims(shape.begin(), shape.end())));
  }
  ir::Value Upscale() {
    const ir::Value x = Argument({2, 8, 5, 6}), w = Argument({8, 16, 2, 2}), b = Argument({16});
    return region_.body()(ir::ConvTranspose{.strides = {2, 2}}, {x, w, b});
  }
  // Where the library has a kernel for any of these windows.
  static bool HasAvx512() {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
  }
  // On the library, where it has a kernel for this processor.
  void ExpectLibrary() {
    if (const Verdict v = OpenCpu()->target().Fuses(region_.body()); !v) {
      ASSERT_FALSE(HasAvx512()) << v.text();
      GTEST_SKIP() << v.text();
    }
    EXPECT_THAT(ExpectAgrees(region_, in_), testing::StartsWith("dnnl:"));
    EXPECT_THAT(ExpectAgrees(region_, in_, BestLayouts(region_, in_)),
                testing::StartsWith("dnnl:"));
  }

  Region region_;
  std::vector<ir::HostValue> in_;
};

TEST_F(ConvolutionTransposeTest, PacksWeightsAndPutsChannelsLast) {
  region_.Return(Upscale());
  ExpectLibrary();
  const RunOptions best = BestLayouts(region_, in_);
  ASSERT_EQ(best.in.size(), 3);
  ASSERT_TRUE(best.in[0] && best.in[1] && best.out[0]);
  EXPECT_EQ(best.in[0]->name(), "permuted(0,2,3,1)");
  EXPECT_THAT(best.in[1]->name(), HasSubstr("onednn"));
  EXPECT_EQ(best.out[0]->name(), "permuted(0,2,3,1)");
}

TEST_F(ConvolutionTransposeTest, UnpacksToAllBytesOfTheWeightsOrRefuses) {
  region_.Return(Upscale());
  const RunOptions best = BestLayouts(region_, in_);
  const ir::EncodingRef packing = best.in.size() == 3 ? best.in[1] : nullptr;
  if (!packing) GTEST_SKIP() << "weights stay as they are";
  const int64_t shape[] = {8, 16, 2, 2};
  const ir::Dim bytes = *packing->Bytes(DType::kF32, {8, 16, 2, 2});
  const std::vector<uint8_t> packed(static_cast<size_t>(bytes.constant()));
  std::vector<uint8_t> plain(8 * 16 * 2 * 2 * 4);
  EXPECT_TRUE(packing->Decode(DType::kF32, shape, packed, plain).ok());
  EXPECT_FALSE(packing->Decode(DType::kF32, shape, packed, std::span(plain).first(1020)).ok());
  EXPECT_FALSE(
      packing->Decode(DType::kF32, shape, std::span(packed).first(packed.size() - 4), plain).ok());
}

TEST_F(ConvolutionTransposeTest, TakesScaleShiftAndActivation) {
  const ir::Value y = Upscale(), scale = Argument({1, 16, 1, 1}), shift = Argument({16, 1, 1});
  region_.Return(region_.body()(ir::Relu{}, {y * scale + shift}));
  ExpectLibrary();
}

TEST_F(ConvolutionTransposeTest, TakesGroupsAndPadding) {
  const ir::Value x = Argument({1, 32, 6, 7}), w = Argument({32, 16, 3, 3}), b = Argument({32});
  const ir::ConvTranspose op{
      .strides = {2, 2}, .padding = {1, 0, 1, 1}, .output_padding = {1, 0}, .groups = 2};
  region_.Return(region_.body()(op, {x, w, b}));
  ExpectLibrary();
}

TEST_F(ConvolutionTransposeTest, GivesOneChannel) {
  const ir::Value x = Argument({1, 24, 9, 8}), w = Argument({24, 1, 2, 2});
  region_.Return(region_.body()(ir::ConvTranspose{.strides = {2, 2}}, {x, w}));
  ExpectLibrary();
}

Verdict Supports(const ir::ConvTranspose& op, const ir::Types& in) {
  const ir::AnyOp any = op;
  const ir::Types out = *any.Infer(in);
  return OpenCpu()->target().Supports({any, in, out});
}

TEST_F(ConvolutionTransposeTest, LeavesTheRestToTheDecomposition) {
  const ir::Dim n(std::make_shared<ir::Symbol>(ir::Symbol{.name = "n", .min = 1}));
  EXPECT_FALSE(Supports({.strides = {2, 2}}, {F32({1, n, 5, 5}), F32({n, 16, 2, 2})}));
  const auto f64 = [](ir::Dims d) { return ir::Type::Tensor(DType::kF64, std::move(d)); };
  EXPECT_THAT(Supports({.strides = {2, 2}}, {f64({1, 8, 5, 5}), f64({8, 16, 2, 2})}).text(),
              HasSubstr("no kernel for f64"));
}

}  // namespace
}  // namespace forge::cpu
