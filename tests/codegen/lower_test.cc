// SPDX-License-Identifier: Apache-2.0
// The formulas of Lower(), computed by the folder: operands are literals, so that results are too.
#include <cmath>
#include <limits>

#include "codegen/literal.h"
#include "codegen/lower_wide.h"
#include "tests/codegen/kernels.h"

namespace forge::codegen {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
const Type kI64{DType::kI64}, kU64{DType::kU64};

// With float controls and without.
struct LowerTest : testing::TestWithParam<bool> {
  Kernel k{.name = "test"};
  Builder b{k};
  Caps caps = [] {
    Caps c;
    c.signed_zero_inf_nan = GetParam();
    return c;
  }();
  LowerRules rules{b, caps};
  WideRules wide{b, rules};

  Val F32(double v) { return b.Literal(kF32, v); }
  double F(Val v) { return FloatOf(v.type().elem, b.LiteralOf(v).value()); }
  Wide Of(int64_t v) { return wide.Literal(kI64, static_cast<uint64_t>(v)); }
  int64_t I(Wide v) {
    return static_cast<int64_t>(b.LiteralOf(v.hi).value() << 32 | b.LiteralOf(v.lo).value());
  }
  bool Bool(Val v) { return b.LiteralOf(v).value() != 0; }
};
INSTANTIATE_TEST_SUITE_P(, LowerTest, testing::Bool(), [](const auto& i) {
  return i.param ? "FloatControls" : "NoFloatControls";
});

TEST_P(LowerTest, ExtremesPropagateNaN) {
  for (Code code : {Code::kMin, Code::kMax}) {
    EXPECT_TRUE(std::isnan(F(rules.Extreme(code, F32(kNan), F32(1)))));
    EXPECT_TRUE(std::isnan(F(rules.Extreme(code, F32(1), F32(kNan)))));
    EXPECT_EQ(F(rules.Extreme(code, F32(3), F32(3))), 3);
  }
  EXPECT_EQ(F(rules.Extreme(Code::kMax, F32(-kInf), F32(2))), 2);
  EXPECT_EQ(F(rules.Extreme(Code::kMin, F32(-kInf), F32(2))), -kInf);
}

TEST_P(LowerTest, FloatsSaturateInIntegers) {
  for (DType t : {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32})
    for (double v : {0.0,           -0.9,         1.5,     -1.5,  127.0, 128.0,        -129.0,
                     255.0,         256.0,        65535.0, 1e5,   -1e5,  2147483520.0, 2147483648.0,
                     -2147483648.0, 4294967040.0, 1e20,    -1e20, kInf,  -kInf,        kNan})
      EXPECT_EQ(b.LiteralOf(rules.Converted(F32(v), Type{t})).value(), ToBits(t, v))
          << v << " to " << Name(t);
}

TEST_P(LowerTest, HalvesAddMultiplyAndCompare) {
  const int64_t values[] = {
      0, 1, -1, 3, 0xffffffff, 0x100000000, -0x100000001, 0x123456789abcdef, kLowest, kHighest};
  for (int64_t x : values) {
    const auto ux = static_cast<uint64_t>(x);
    EXPECT_EQ(I(wide.Neg(Of(x))), static_cast<int64_t>(-ux));
    for (int64_t y : values) {
      const auto uy = static_cast<uint64_t>(y);
      EXPECT_EQ(I(wide.Add(Of(x), Of(y))), static_cast<int64_t>(ux + uy));
      EXPECT_EQ(I(wide.Sub(Of(x), Of(y))), static_cast<int64_t>(ux - uy));
      EXPECT_EQ(I(wide.Mul(Of(x), Of(y))), static_cast<int64_t>(ux * uy));
      EXPECT_EQ(Bool(wide.Lt(Of(x), Of(y), true)), x < y);
      EXPECT_EQ(Bool(wide.Lt(Of(x), Of(y), false)), ux < uy);
      EXPECT_EQ(Bool(wide.Eq(Of(x), Of(y))), x == y);
    }
  }
}

TEST_P(LowerTest, HalvesShift) {
  for (int64_t x : {int64_t{1}, int64_t{-1}, int64_t{0x123456789abcdef}, kLowest}) {
    for (int n : {0, 1, 31, 32, 33, 63}) {
      const Val by = b.Literal(kU32, n);
      const auto ux = static_cast<uint64_t>(x);
      EXPECT_EQ(I(wide.Shl(Of(x), by)), static_cast<int64_t>(ux << n)) << x << " by " << n;
      EXPECT_EQ(I(wide.Shr(Of(x), by, true)), x >> n) << x << " by " << n;
      EXPECT_EQ(I(wide.Shr(Of(x), by, false)), static_cast<int64_t>(ux >> n)) << x << " by " << n;
    }
  }
}

TEST_P(LowerTest, HalvesComeFromFloats) {
  for (double v : {0.0, 1.9, -1.9, 4294967296.0, -4294967808.0, 9.2e18, 9.3e18, -9.3e18, 1.8e19,
                   1.9e19, kInf, -kInf, kNan}) {
    const double x = F(F32(v));
    EXPECT_EQ(I(wide.FromFloat(F32(v), kI64)), static_cast<int64_t>(ToBits(DType::kI64, x))) << v;
    EXPECT_EQ(I(wide.FromFloat(F32(v), kU64)), static_cast<int64_t>(ToBits(DType::kU64, x))) << v;
  }
}

TEST_P(LowerTest, HalvesRoundOnceInFloats) {
  for (int64_t x : {int64_t{0}, int64_t{1}, int64_t{-7}, int64_t{16777217}, int64_t{0x7fffffffff},
                    int64_t{0x8000004000000}, int64_t{0x8000004000001}, int64_t{-0x8000004000001},
                    int64_t{0x1000001}, kLowest, kHighest}) {
    EXPECT_EQ(F(wide.ToFloat(Of(x), kF32, true)), static_cast<float>(x)) << x;
    EXPECT_EQ(F(wide.ToFloat(Of(x), kF32, false)), static_cast<float>(static_cast<uint64_t>(x)));
    EXPECT_EQ(F(wide.ToFloat(Of(x), {DType::kF64}, true)), static_cast<double>(x)) << x;
  }
}

}  // namespace
}  // namespace forge::codegen
