// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "codegen/kernel/functions.h"
#include "codegen/kernel/literal.h"
#include "tests/codegen/kernels.h"
#include "tests/support/ir_values.h"

namespace forge::codegen {
namespace {

struct BuilderTest : ::testing::Test {
  Kernel k{.name = "test"};
  Builder b{k};
  const Val x = b.Builtin(BuiltinKind::kLocalX);  // an i32 of unknown value
  const Val f = b.Convert(x, DType::kF32);

  double F(Val v) { return FloatOf(v.type().elem, b.LiteralOf(v).value()); }
  int64_t I(Val v) { return IntegerOf(v.type().elem, b.LiteralOf(v).value()); }
  Val Lit(DType t, double v) { return b.Literal(Type{t}, v); }
};

TEST_F(BuilderTest, LiteralsSaturateInIntegers) {
  EXPECT_EQ(I(Lit(DType::kI8, 300)), 127);
  EXPECT_EQ(I(Lit(DType::kI8, -kInf)), -128);
  EXPECT_EQ(I(Lit(DType::kU8, -1)), 0);
  EXPECT_EQ(I(Lit(DType::kU32, 1e10)), 0xffffffff);
  EXPECT_EQ(I(Lit(DType::kI64, 1e30)), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(I(Lit(DType::kI32, kNan)), 0);
  EXPECT_EQ(I(Lit(DType::kI32, -2.9)), -2);
}

TEST_F(BuilderTest, EqualLiteralsAreOne) {
  EXPECT_EQ(b.Int(7).id, b.Int(7).id);
  EXPECT_NE(b.Int(7).id, Lit(DType::kU32, 7).id);
  EXPECT_NE(Lit(DType::kF32, 0.0).id, Lit(DType::kF32, -0.0).id);
}

TEST_F(BuilderTest, FoldsLikeTheDevice) {
  EXPECT_EQ(F(Lit(DType::kF32, 0.1) + 0.2), 0.1f + 0.2f);
  EXPECT_EQ(I(b.Int(0x7fffffff) + 1), -0x80000000LL);
  EXPECT_EQ(I(b.Int(-7) % b.Int(4)), -3);
  EXPECT_TRUE(std::isnan(F(max(Lit(DType::kF32, kNan), 1.0))));
  EXPECT_TRUE(std::isnan(F(min(Lit(DType::kF32, 1.0), kNan))));
  EXPECT_EQ(I(convert(Lit(DType::kF32, 3e9), DType::kI32)), 0x7fffffff);
  EXPECT_EQ(I(convert(Lit(DType::kF32, kNan), DType::kU8)), 0);
  EXPECT_EQ(I(bitcast(Lit(DType::kF32, 1.0), DType::kU32)), 0x3f800000);
  EXPECT_FLOAT_EQ(static_cast<float>(F(exp(Lit(DType::kF32, 1.0)))), std::exp(1.0f));
  EXPECT_DOUBLE_EQ(F(exp(Lit(DType::kF64, -3.0))), std::exp(-3.0));
}

TEST_F(BuilderTest, LogicWithNoneOrAllBitsNeedsNoInstruction) {
  EXPECT_EQ(I(x | b.Int(-1)), -1);
  EXPECT_EQ((x | b.Int(0)).id, x.id);
  EXPECT_EQ((x & b.Int(-1)).id, x.id);
  EXPECT_EQ(I(x & b.Int(0)), 0);
  EXPECT_EQ((x ^ b.Int(0)).id, x.id);
}

TEST_F(BuilderTest, IntegerDivisionIsTotal) {
  EXPECT_EQ(I(b.Int(7) / b.Int(0)), -1);
  EXPECT_EQ(I(b.Int(7) % b.Int(0)), 7);
  EXPECT_EQ(I(Lit(DType::kU32, 7) / Lit(DType::kU32, 0)), 0xffffffff);
  const Val lowest = b.Int(std::numeric_limits<int32_t>::min());
  EXPECT_EQ(I(lowest / b.Int(-1)), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(I(lowest % b.Int(-1)), 0);
}

TEST_F(BuilderTest, ShiftsBeyondTheWidthGiveZeroOrTheSign) {
  EXPECT_EQ(I(b.Int(5) << 32.0), 0);
  EXPECT_EQ(I(b.Int(-5) >> 40.0), -1);
  EXPECT_EQ(I(Lit(DType::kU32, 5) >> 32.0), 0);
  EXPECT_EQ(I(b.Int(-8) >> 2.0), -2);
}

TEST_F(BuilderTest, KnowsIdentities) {
  EXPECT_EQ((x + 0).id, x.id);
  EXPECT_EQ((x * 1).id, x.id);
  EXPECT_EQ((0 + x).id, x.id);
  EXPECT_EQ(I(x - x), 0);
  EXPECT_EQ(I(x & 0), 0);
  EXPECT_EQ((x + 3 - 3).id, x.id);
  EXPECT_EQ((x + 3 + 4).id, (x + 7).id);
  EXPECT_EQ((-(-f)).id, f.id);
  EXPECT_EQ(select(~(x < 3), x, f.b->Int(0)).id, select(x < 3, b.Int(0), x).id);
  EXPECT_EQ(max(f, -kInf).id, f.id);
  EXPECT_EQ((f / 4).id, (f * 0.25).id);
  EXPECT_EQ(QuotientOf(x, b.Int(8)).id, b.Emit(Code::kShr, kI32, {x, b.Int(3)}).id);
  EXPECT_EQ(RemainderOf(x, b.Int(8)).id, (x & 7).id);
}

TEST_F(BuilderTest, ComparesWidenedIntegersAsWideAsTheyWere) {
  const Val wide = convert(x, DType::kI64), least = b.Bits({DType::kI64}, uint64_t{0} - 0x80000000);
  const auto number = [&](int64_t v) { return b.Bits({DType::kI64}, static_cast<uint64_t>(v)); };
  EXPECT_EQ((wide < number(-3)).id, (x < -3).id);
  EXPECT_EQ((number(7) <= wide).id, (b.Int(7) <= x).id);
  EXPECT_EQ((wide == number(5)).id, (x == 5).id);
  EXPECT_EQ((wide <= least).id, (x <= b.Int(INT32_MIN)).id);
  EXPECT_EQ((wide < convert(b.Emit(Code::kNeg, kI32, {x}), DType::kI64)).id, (x < -x).id);
  const int64_t beyond = int64_t{1} << 31;
  EXPECT_EQ(b.LiteralOf(wide < number(beyond)), 1u);
  EXPECT_EQ(b.LiteralOf(wide < number(-beyond - 1)), 0u);
  EXPECT_EQ(b.LiteralOf(number(beyond) <= wide), 0u);
  EXPECT_EQ(b.LiteralOf(number(-beyond - 1) <= wide), 1u);
  EXPECT_EQ(b.LiteralOf(wide == number(beyond)), 0u);
  const Val positive = convert(b.Emit(Code::kBitcast, kU32, {x}), DType::kI64);
  EXPECT_FALSE(b.LiteralOf(positive < number(beyond)).has_value());
  EXPECT_EQ(b.LiteralOf(positive < number(-1)), 0u);
  // Not those of which a bit was lost.
  const Val low = convert(b.Emit(Code::kAdd, {DType::kI64}, {wide, wide}), DType::kI32);
  EXPECT_NE((low < 3).id, (wide + wide < number(3)).id);
}

TEST_F(BuilderTest, KeepsWhatFloatsDistinguish) {
  EXPECT_NE((f + 0).id, f.id);                    // -0 + 0 is 0
  EXPECT_FALSE(b.LiteralOf(f * 0).has_value());   // NaN
  EXPECT_FALSE(b.LiteralOf(f - f).has_value());   // infinity
  EXPECT_FALSE(b.LiteralOf(f == f).has_value());  // NaN
}

TEST_F(BuilderTest, SharesEqualInstructionsOfOpenBlocks) {
  const Val outside = x * 5;
  Val inside;
  b.If(x < 3, [&] {
    EXPECT_EQ((x * 5).id, outside.id);
    inside = x * 6;
    EXPECT_EQ((6 * x).id, inside.id);
  });
  EXPECT_NE((x * 6).id, inside.id);
}

TEST_F(BuilderTest, SharesLoadsOfWhatIsOnlyRead) {
  const uint16_t in = b.AddView(Reads("x", kF32, 0));
  View both = Writes("y", kF32, 1);
  both.reads = true;
  const uint16_t out = b.AddView(both);
  EXPECT_EQ(b.Load(in, x).id, b.Load(in, x).id);
  EXPECT_NE(b.Load(out, x).id, b.Load(out, x).id);
}

TEST_F(BuilderTest, MovesInvariantsOutOfLoopsButNotOutOfConditions) {
  b.For({b.Int(0), b.Scalar(ir::Dim(std::make_shared<ir::Symbol>(ir::Symbol{"n"}))), b.Int(1)}, {},
        [&](Val i, const Vals&) {
          (void)(x * 3 + i);
          b.If(i < 3, [&] { (void)(x * 7); });
          return Vals{};
        });
  b.Finish();
  const auto has_mul = [&](BlockId block) {
    int n = 0;
    for (const Inst& i : k.blocks[block].insts) n += i.code == Code::kMul;
    return n;
  };
  EXPECT_EQ(has_mul(0), 1);
  EXPECT_EQ(has_mul(1), 0);
  EXPECT_EQ(has_mul(2), 1);
}

TEST_F(BuilderTest, LoopsThatRunOnceAreEmittedInPlace) {
  const auto twice = [](Val, Vals v) { return Vals{v[0] * 2}; };
  EXPECT_EQ(b.For({b.Int(5), b.Int(5), b.Int(1)}, {x}, twice)[0].id, x.id);
  EXPECT_EQ(b.For({b.Int(0), b.Int(3), b.Int(4)}, {x}, twice)[0].id, (x * 2).id);
  EXPECT_EQ(b.For({b.Int(0), b.Int(3), b.Int(1), Builder::Range::kWhole}, {x}, twice)[0].id,
            (x * 8).id);
  EXPECT_EQ(Count(k, Code::kFor), 0);
}

TEST_F(BuilderTest, WholeLoopsAreUnrolledUpToALimit) {
  const auto loop = [&](int trips, Builder::Range::Unroll unroll) {
    const auto sum = [&](Val i, const Vals& v) { return Vals{v[0] * f + convert(i, DType::kF32)}; };
    b.For({b.Int(0), b.Int(trips), b.Int(1), unroll}, {f}, sum);
    return Count(k, Code::kFor);
  };
  const int before = Count(k, Code::kMul);
  EXPECT_EQ(loop(1024, Builder::Range::kWhole), 0);
  EXPECT_EQ(Count(k, Code::kMul), before + 1024);
  EXPECT_EQ(loop(1025, Builder::Range::kWhole), 1);
  EXPECT_EQ(loop(2, Builder::Range::kAsDriverLikes), 2);
  EXPECT_EQ(Count(k, Code::kMul), before + 1024 + 2);
}

TEST_F(BuilderTest, KnownConditionsChoose) {
  const Vals v = b.If(b.Int(1) < b.Int(2), [&] { return Vals{x}; }, [&] { return Vals{f}; });
  EXPECT_EQ(v[0].id, x.id);
}

TEST_F(BuilderTest, PacksAndExtracts) {
  const Val parts[] = {f, f + 1};
  const Val v = b.Pack(kF32.Lanes(2), parts);
  EXPECT_EQ(b.Extract(v, 1).id, parts[1].id);
  const Val loaded = b.Load(b.AddView(Reads("v", kF32.Lanes(2), 0)), x);
  const Val again[] = {b.Extract(loaded, 0), b.Extract(loaded, 1)};
  EXPECT_EQ(b.Pack(kF32.Lanes(2), again).id, loaded.id);
  EXPECT_EQ((v * 2.0).type(), kF32.Lanes(2));
  EXPECT_EQ((v * f).type(), kF32.Lanes(2));
  EXPECT_EQ(F(b.Extract(splat(b.Literal(kF32, 3), 4), 2)), 3);
}

struct UniformTest : BuilderTest {
  const Val group = b.Builtin(BuiltinKind::kWorkgroupX);
};

TEST_F(UniformTest, IsTheLeastOfOperands) {
  k.grid[0] = 4;
  EXPECT_EQ(b.Int(3).uniform(), Uniform::kGrid);
  EXPECT_EQ(b.Builtin(BuiltinKind::kWorkgroupX).uniform(), Uniform::kWorkgroup);
  EXPECT_EQ((b.Builtin(BuiltinKind::kWorkgroupX) + 1).uniform(), Uniform::kWorkgroup);
  EXPECT_EQ((b.Builtin(BuiltinKind::kWorkgroupX) + x).uniform(), Uniform::kInvocation);
  EXPECT_EQ(b.SubgroupReduce(ReduceKind::kSum, x).uniform(), Uniform::kSubgroup);
  const uint16_t in = b.AddView(Reads("x", kF32, 0));
  EXPECT_EQ(b.Load(in, b.Int(0)).uniform(), Uniform::kGrid);
  EXPECT_EQ(b.Load(b.AddView(Shared("s", kF32, 4)), b.Int(0)).uniform(), Uniform::kWorkgroup);
}

TEST_F(UniformTest, FollowsControl) {
  const Vals v = b.If(x < 3, [&] { return Vals{b.Int(1)}; }, [&] { return Vals{b.Int(2)}; });
  EXPECT_EQ(v[0].uniform(), Uniform::kInvocation);
  const Vals loop =
      b.While({b.Int(64)}, [](Vals v) { return v[0] > 0; }, [&](Vals v) { return Vals{v[0] - 1}; });
  EXPECT_EQ(loop[0].uniform(), Uniform::kGrid);
}

TEST_F(UniformTest, FallsWhenALoopCarriesWhatDiffers) {
  Val first;
  const Vals loop = b.For({b.Int(0), b.Int(9), b.Int(1)}, {b.Int(0), b.Int(0)}, [&](Val, Vals v) {
    first = v[0] + 1;
    return Vals{v[1], x};
  });
  EXPECT_EQ(first.uniform(), Uniform::kInvocation);
  EXPECT_EQ(loop[0].uniform(), Uniform::kInvocation);
}

struct IndexTest : BuilderTest {
  const ir::SymbolRef i = std::make_shared<ir::Symbol>(ir::Symbol{"i", 0, 999});
  const ir::SymbolRef j = std::make_shared<ir::Symbol>(ir::Symbol{"j", -50, 50});
  const ir::SymbolRef n = std::make_shared<ir::Symbol>(ir::Symbol{"n", 1, 4096});
  // The value of `d` where i and j are these.
  int64_t At(const ir::Dim& d, int64_t at_i, int64_t at_j) {
    const std::pair<ir::SymbolRef, Val> at[] = {{i, b.Int(at_i)}, {j, b.Int(at_j)}};
    return I(b.Index(d, at));
  }
};

TEST_F(IndexTest, AgreesWithTheExpression) {
  const ir::Dim di(i), dj(j);
  const ir::Dim all[] = {di * 3 + dj * 7 - 4, FloorDiv(di, 8),     Mod(di, 8),
                         FloorDiv(di, 7),     Mod(di + 3, 7),      FloorDiv(dj, 4),
                         Mod(dj, 4),          FloorDiv(dj * 3, 7), Mod(dj * 3 - 1, 7) + di,
                         Min(di, dj + 20),    Max(di, dj) * di};
  for (const ir::Dim& d : all)
    for (int64_t at_i : {0, 1, 7, 8, 55, 999})
      for (int64_t at_j : {-50, -8, -1, 0, 3, 50})
        EXPECT_EQ(At(d, at_i, at_j), d.Evaluate({{i, at_i}, {j, at_j}}).value())
            << d.ToText() << " at " << at_i << ", " << at_j;
}

TEST_F(IndexTest, WhatTheHostKnowsIsOneScalar) {
  const ir::Dim di(i), dn(n);
  const std::pair<ir::SymbolRef, Val> at[] = {{i, x}};
  (void)b.Index(di * dn * dn + dn * 3 + 5, at);
  EXPECT_EQ(k.scalars.size(), 2u);  // n * n, 3 * n + 5
  EXPECT_EQ(b.Scalar(dn * 2).id, b.Scalar(dn + dn).id);
  EXPECT_EQ(I(b.Scalar(12)), 12);
}

TEST_F(IndexTest, DividesByPowersOfTwoWithShifts) {
  const std::pair<ir::SymbolRef, Val> at[] = {{i, x}, {j, x}};
  (void)b.Index(FloorDiv(ir::Dim(i), 16) + Mod(ir::Dim(j), 32), at);
  EXPECT_EQ(Count(k, Code::kDiv) + Count(k, Code::kRem), 0);
}

}  // namespace
}  // namespace forge::codegen
