// SPDX-License-Identifier: Apache-2.0
// What kernels look like as CUDA C++. tests/cuda_runtime compiles them.
#include <gmock/gmock.h>

#include "codegen/cuda/bounds.h"
#include "codegen/cuda/print_cuda.h"
#include "tests/codegen/kernels.h"

namespace forge::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(const Kernel& k) { return PrintCuda(k, RichCaps(), "").text; }

TEST(CudaTest, NamesTheFunctionAfterKernelAndDescription) {
  const Kernel k = MapKernel("double", kF32, kF32, [](Val x) { return x + x; });
  const CudaCode code = PrintCuda(k, RichCaps(), "add f32[200]\n#include \"x\"");
  EXPECT_EQ(code.entry, "forge_double_add_f32_200_include_x");
  EXPECT_EQ(OperandsOf(k), 2);
  EXPECT_THAT(code.text, HasSubstr("// add f32[200] #include \"x\"\n"));
  EXPECT_THAT(code.text, HasSubstr("__launch_bounds__(64)"));
  EXPECT_THAT(code.text, HasSubstr("\n" + code.entry + "("));
}

TEST(CudaTest, PutsScalarsBehindOperands) {
  const ir::Dim n(std::make_shared<ir::Symbol>(ir::Symbol{"n", 1, 100}));
  const Kernel k = MakeKernel("scalars", [&](Builder& b, Val i) {
    const uint16_t y = b.AddView(Writes("y", kI32, 0));
    b.If(i < b.Scalar(n), [&] { b.Store(y, i, b.Scalar(n)); });
  });
  EXPECT_THAT(TextOf(k), HasSubstr("(i32* __restrict__ operand_0, i32 s0)"));
}

TEST(CudaTest, LoadsAndStoresVectorsWhole) {
  const Kernel k = MapKernel("vectors", kF32.Lanes(4), kF32.Lanes(4), [](Val x) { return x * x; });
  const std::string text = TextOf(k);
  EXPECT_THAT(text, HasSubstr("struct alignas(16) f32x4 { f32 x, y, z, w; };"));
  EXPECT_THAT(text, HasSubstr("const f32x4 v3 = x_0[v1];"));
  EXPECT_THAT(text, HasSubstr("= {v3.x * v3.x, v3.y * v3.y, v3.z * v3.z, v3.w * v3.w};"));
}

TEST(CudaTest, ApproximatesFunctionsOfF32OnRequest) {
  const auto functions = [](Val x) { return native_exp2(x) + sqrt(x); };
  Kernel single = MapKernel("single", kF32, kF32, functions),
         wide = MapKernel("wide", kF64, kF64, functions);
  EXPECT_THAT(TextOf(single), Not(HasSubstr("fast_sqrt(v")));
  const uint64_t before = Hash(single);
  single.approximate = wide.approximate = true;
  EXPECT_NE(Hash(single), before);
  for (const char* text : {"fast_exp2(v3)", "fast_sqrt(v3)", "\"ex2.approx.f32\""})
    EXPECT_THAT(TextOf(single), HasSubstr(text));
  EXPECT_THAT(TextOf(wide), Not(HasSubstr("fast_")));
}

TEST(CudaTest, RestrictsOperandsThatShareNoMemory) {
  EXPECT_THAT(TextOf(TreeSum()), HasSubstr("const f32* __restrict__ operand_0"));
  const Kernel k = MakeKernel("aliased", [](Builder& b, Val i) {
    View out = Writes("y", kF32, 1);
    out.aliased = true;
    b.Store(b.AddView(out), i, b.Load(b.AddView(Reads("x", kF32, 0)), i));
  });
  EXPECT_THAT(TextOf(k), HasSubstr("void* operand_1"));
}

TEST(CudaTest, WrapsSignedIntegersThatMayOverflow) {
  const Kernel k = MapKernel("wraps", kI32, kI32, [](Val x) { return x * 3 + 1; });
  EXPECT_THAT(TextOf(k), HasSubstr("i32(u32(v3) * u32(3))"));
  const Kernel narrow = MapKernel("narrow", kI8, kI8, [](Val x) { return x * x; });
  EXPECT_THAT(TextOf(narrow), HasSubstr("i8(i8(u32(v3) * u32(v3)))"));
}

TEST(CudaTest, ComputesIndicesPlainly) {
  const Kernel k = MapKernel("index", kF32, kF32, [](Val x) { return x; });
  EXPECT_THAT(TextOf(k), HasSubstr("= block_x * 64;"));
  EXPECT_THAT(TextOf(k), Not(HasSubstr("u32(")));
}

TEST(CudaTest, CopiesCarriedValuesThatExchange) {
  const Kernel k = MakeKernel("exchange", [](Builder& b, Val i) {
    const uint16_t y = b.AddView(Writes("y", kI32, 0));
    const Vals v = b.For({b.Int(0), i, b.Int(1)}, {b.Int(0), b.Int(1)},
                         [](Val, const Vals& v) { return Vals{v[1], v[0]}; });
    b.Store(y, i, v[0]);
  });
  EXPECT_THAT(TextOf(k), HasSubstr("    const i32 v5 = v3;\n    const i32 v6 = v2;\n"
                                   "    v2 = v5;\n    v3 = v6;\n"));
}

TEST(CudaTest, MeetsInFullWarps) {
  const std::string text = TextOf(SumBehindLoop());
  EXPECT_THAT(text, HasSubstr("subgroup_reduce("));
  EXPECT_THAT(text, HasSubstr("__shfl_xor_sync(0xffffffffu"));
  EXPECT_THAT(TextOf(TreeSum()), HasSubstr("__syncthreads();"));
  EXPECT_THAT(TextOf(TreeSum()), HasSubstr("__shared__ alignas(16) f32 tile_2[64];"));
}

TEST(CudaTest, NumbersLanesOfBlocksInSeveralDimensions) {
  Kernel k{.name = "lanes", .workgroup = {8, 8, 1}};
  Builder b(k);
  const uint16_t y = b.AddView(Writes("y", kI32, 0));
  b.Store(y, b.Builtin(BuiltinKind::kSubgroup), b.Builtin(BuiltinKind::kLane));
  b.Finish();
  const std::string text = TextOf(k);
  EXPECT_THAT(text, HasSubstr("lane = (threadIdx.x + 8 * (threadIdx.y + 8 * threadIdx.z)) % 32;"));
  EXPECT_THAT(text, HasSubstr("warp = (threadIdx.x + 8 * (threadIdx.y + 8 * threadIdx.z)) / 32;"));
}

TEST(CudaTest, WritesLiteralsThatReadBack) {
  const Kernel k = MakeKernel("literals", [](Builder& b, Val i) {
    const uint16_t x = b.AddView(Reads("x", kF32, 0)), y = b.AddView(Writes("y", kF32, 1));
    const Val inf = b.Bits(kF32, 0x7f800000), third = b.Bits(kF32, 0x3eaaaaab);
    b.Store(y, i, select(b.Load(x, i) < third, inf, b.Bits(kF32, 0x80000000)));
  });
  const std::string text = TextOf(k);
  EXPECT_THAT(text, HasSubstr("< 0.33333334f"));
  EXPECT_THAT(text, HasSubstr("? __uint_as_float(0x7f800000u) : -0.0f"));
}

// Bounds of the value that `make` computes from the number of an invocation, 0 .. 255.
Bounds BoundsIn(absl::FunctionRef<Val(Builder& b, Val i)> make) {
  Id id = 0;
  const Kernel k = MakeKernel("bounds", [&](Builder& b, Val i) {
    const Val v = make(b, i);
    id = v.id;
    b.Store(b.AddView(Writes("y", kI32, 0)), i, v);
  });
  return BoundsOf(k)[id];
}

TEST(BoundsTest, FollowsArithmetic) {
  const Bounds product = BoundsIn([](Builder&, Val i) { return i * -3 + 7; });
  EXPECT_EQ(product.low, 7 - 3 * 255);
  EXPECT_EQ(product.high, 7);
  EXPECT_FALSE(product.overflows);
  const Bounds rest = BoundsIn([](Builder&, Val i) { return RemainderOf(i, i.b->Int(10)); });
  EXPECT_EQ(rest.low, 0);
  EXPECT_EQ(rest.high, 9);
  const Bounds quotient = BoundsIn([](Builder&, Val i) { return QuotientOf(i, i.b->Int(7)); });
  EXPECT_EQ(quotient.high, 255 / 7);
}

TEST(BoundsTest, KnowsNothingOfWhatOverflows) {
  const Bounds b = BoundsIn([](Builder&, Val i) { return i * 10'000'000; });
  EXPECT_TRUE(b.overflows);
  EXPECT_EQ(b.low, INT32_MIN);
  EXPECT_EQ(b.high, INT32_MAX);
}

TEST(BoundsTest, KnowsNothingOfWhatIsLoaded) {
  const Bounds b =
      BoundsIn([](Builder& b, Val i) { return b.Load(b.AddView(Reads("x", kI32, 1)), i) + 1; });
  EXPECT_TRUE(b.overflows);
}

TEST(BoundsTest, BoundsCounters) {
  const Kernel k = MakeKernel("counter", [](Builder& b, Val i) {
    const uint16_t y = b.AddView(Writes("y", kI32, 0));
    b.For({b.Int(2), b.Int(50), b.Int(3)}, {}, [&](Val n, const Vals&) {
      b.Store(y, i, n * 2);
      return Vals{};
    });
  });
  EXPECT_THAT(TextOf(k), HasSubstr("for (i32 v2 = 2; v2 < 50; v2 += 3) {"));
  EXPECT_THAT(TextOf(k), HasSubstr("= v2 * 2;"));
}

}  // namespace
}  // namespace forge::codegen
