// SPDX-License-Identifier: Apache-2.0
#include "tests/codegen/kernels.h"

namespace forge::codegen {
namespace {

TEST(KernelTextTest, ReadsLikeAProgram) {
  EXPECT_EQ(ToText(TreeSum()), R"(kernel tree_sum: workgroup 64 x 1 x 1, grid 4 x 1 x 1
  x = operand 0: f32, reads
  y = operand 1: f32, writes
  tile = shared f32[64]
{
  %0: i32 = local.x
  %1: i32 = workgroup.x
  %2: i32 = mul %1, 64
  %3: i32 = add %0, %2
  %4: f32 = load x[%3]
  store tile[%0], %4
  barrier
  %5: i32 = while with %6 = 32 {
    %7: bool = lt 0, %6
    yield %7
  } do with %8 = %6 {
    %9: bool = lt %0, %8
    if %9 {
      %10: i32 = add %0, %8
      %11: f32 = load tile[%10]
      %12: f32 = load tile[%0]
      %13: f32 = add %11, %12
      store tile[%0], %13
    }
    barrier
    %14: i32 = shr %8, 1
    yield %14
  }
  %15: bool = eq %0, 0
  if %15 {
    %16: f32 = load tile[%0]
    store y[%1], %16
  }
}
)");
}

TEST(KernelTextTest, ShowsScalarsLoopsAndCarriedValues) {
  const Kernel k = MakeKernel("row_max", [](Builder& b, Val i) {
    const ir::Dim n(std::make_shared<ir::Symbol>(ir::Symbol{"n", 1, 4096}));
    const uint16_t x = b.AddView(Reads("x", kF32, 0)), y = b.AddView(Writes("y", kF32, 1));
    const Val most =
        b.For({b.Int(0), b.Scalar(n), b.Int(1)}, {b.Literal(kF32, -INFINITY)},
              [&](Val c, Vals v) { return Vals{max(v[0], b.Load(x, i * b.Scalar(n) + c))}; })[0];
    const Val known =
        b.If(most < 0, [&] { return Vals{b.Literal(kF32, 0.5)}; }, [&] { return Vals{most}; })[0];
    b.Store(y, i, known);
  });
  EXPECT_EQ(ToText(k), R"(kernel row_max: workgroup 64 x 1 x 1, grid 4 x 1 x 1
  x = operand 0: f32, reads
  y = operand 1: f32, writes
  s0 = n
{
  %0: i32 = local.x
  %1: i32 = workgroup.x
  %2: i32 = mul %1, 64
  %3: i32 = add %0, %2
  %4: i32 = mul %3, s0
  %5: f32 = for %6 in 0 .. s0 step 1 with %7 = -inf {
    %8: i32 = add %6, %4
    %9: f32 = load x[%8]
    %10: f32 = max %7, %9
    yield %10
  }
  %11: bool = lt %5, 0.0
  %12: f32 = if %11 {
    yield 0.5
  } else {
    yield %5
  }
  store y[%3], %12
}
)");
}

TEST(KernelHashTest, DependsOnParts) {
  Kernel whole = MapKernel("copy", kF32, kF32, [](Val x) { return x; });
  whole.views[1].operand = 3;
  Kernel two = whole, three = whole, small = whole;
  two.views[0] = InParts(two.views[0], 2, 64);
  three.views[0] = InParts(three.views[0], 3, 64);
  small.views[0] = InParts(small.views[0], 2, 32);
  for (const Kernel& other : {whole, three, small}) EXPECT_NE(Hash(two), Hash(other));
}

TEST(KernelTextTest, ToTextOfTypes) {
  EXPECT_EQ(ToText(kF32), "f32");
  EXPECT_EQ(ToText(Type{DType::kU8}.Lanes(4)), "u8x4");
}

TEST(KernelHashTest, DependsOnTheProgramAndNotOnNames) {
  const auto scaled = [](std::string name, double by) {
    return MapKernel(std::move(name), kF32, kF32, [&](Val x) { return x * by; });
  };
  EXPECT_EQ(Hash(scaled("a", 2)), Hash(scaled("b", 2)));
  EXPECT_NE(Hash(scaled("a", 2)), Hash(scaled("a", 3)));
  Kernel k = scaled("a", 2);
  const uint64_t before = Hash(k);
  k.workgroup[0] = 32;
  EXPECT_NE(Hash(k), before);
  k.workgroup[0] = 64;
  k.views[0].writes = true;
  EXPECT_NE(Hash(k), before);
}

}  // namespace
}  // namespace forge::codegen
