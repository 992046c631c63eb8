// SPDX-License-Identifier: Apache-2.0
// Floating-point opcodes and conversions against their definitions in the PTX ISA, over edge
// values.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "base/narrow_float.h"
#include "tests/ptx/one_op.h"

namespace forge::ptx {
namespace {

using Row = std::vector<uint64_t>;
constexpr float kInf = std::numeric_limits<float>::infinity();

const std::vector<float>& Edge32() {
  static const std::vector<float> values = {
      0.0f,      -0.0f,     1.0f,          -1.0f,           1.5f,
      3.0f,      -2.5f,     0.1f,          1e10f,           -1e-10f,
      0x1p-126f, 0x1p-149f, -0x1p-140f,    0x1.fffffep127f, -0x1.fffffep127f,
      kInf,      -kInf,     std::nanf(""), 16777217.0f,     0x1.000002p0f,
      0.5f,      65519.0f};
  return values;
}

float F32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double F64(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t Canonical32(float v) { return v != v ? 0x7fffffff : BitsOf(v); }

std::vector<Row> Rows32(int operands) {
  std::vector<Row> rows = {{}};
  for (int i = 0; i < operands; ++i) {
    std::vector<Row> longer;
    for (const Row& row : rows)
      for (const float v : Edge32()) {
        longer.push_back(row);
        longer.back().push_back(BitsOf(v));
      }
    rows = std::move(longer);
  }
  return rows;
}

// any_nan: the ISA does not say which NaN a NaN becomes
void ExpectFloats(const std::string& instruction, const std::vector<int>& bits,
                  const std::vector<Row>& rows,
                  const std::function<uint64_t(const Row&)>& reference, bool any_nan = false) {
  for (size_t start = 0; start < rows.size(); start += 1024) {
    const std::vector<Row> part(
        rows.begin() + static_cast<ptrdiff_t>(start),
        rows.begin() + static_cast<ptrdiff_t>(std::min(start + 1024, rows.size())));
    const auto got = Execute(instruction, bits, part);
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (size_t i = 0; i < part.size(); ++i) {
      const uint64_t want = reference(part[i]);
      if (any_nan && std::isnan(F32(want)) && std::isnan(F32((*got)[i]))) continue;
      ASSERT_EQ((*got)[i], want) << instruction << " of " << ::testing::PrintToString(part[i]);
    }
  }
}

// A sum or product under a rounding mode, which the compiler must not move.
template <class F>
[[gnu::noinline]] float Under(int mode, float a, float b, F f) {
  volatile float x = a, y = b;
  std::fesetround(mode);
  volatile float r = f(x, y);
  std::fesetround(FE_TONEAREST);
  return r;
}

TEST(FloatOpsTest, ArithmeticRoundsAsAsked) {
  const auto pairs = Rows32(2);
  const std::vector<int> three(3, 32);
  const std::pair<const char*, int> modes[] = {
      {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};
  for (const auto& [suffix, mode] : modes) {
    const int m = mode;
    ExpectFloats(fmt::format("add{}.f32 d, a, b", suffix), three, pairs, [&](const Row& r) {
      return Canonical32(Under(m, F32(r[0]), F32(r[1]), [](float a, float b) { return a + b; }));
    });
    ExpectFloats(fmt::format("mul{}.f32 d, a, b", suffix), three, pairs, [&](const Row& r) {
      return Canonical32(Under(m, F32(r[0]), F32(r[1]), [](float a, float b) { return a * b; }));
    });
    ExpectFloats(fmt::format("div{}.f32 d, a, b", suffix), three, pairs, [&](const Row& r) {
      return Canonical32(Under(m, F32(r[0]), F32(r[1]), [](float a, float b) { return a / b; }));
    });
  }
}

TEST(FloatOpsTest, FmaRoundsOnce) {
  ExpectFloats("fma.rn.f32 d, a, b, c", {32, 32, 32, 32}, Rows32(3),
               [](const Row& r) { return Canonical32(std::fma(F32(r[0]), F32(r[1]), F32(r[2]))); });
}

TEST(FloatOpsTest, FlushesSubnormalsOnRequest) {
  const auto flush = [](float v) {
    return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v;
  };
  ExpectFloats("add.ftz.f32 d, a, b", {32, 32, 32}, Rows32(2), [&](const Row& r) {
    return Canonical32(flush(flush(F32(r[0])) + flush(F32(r[1]))));
  });
  ExpectFloats("mul.sat.f32 d, a, b", {32, 32, 32}, Rows32(2), [](const Row& r) {
    const float v = F32(r[0]) * F32(r[1]);
    return v != v || v <= 0 ? BitsOf(0.0f) : BitsOf(std::min(v, 1.0f));
  });
}

TEST(FloatOpsTest, MinAndMaxPreferNumbers) {
  for (const bool max : {false, true}) {
    for (const bool nan : {false, true}) {
      ExpectFloats(fmt::format("{}{}.f32 d, a, b", max ? "max" : "min", nan ? ".NaN" : ""),
                   {32, 32, 32}, Rows32(2), [&](const Row& r) {
                     const float a = F32(r[0]), b = F32(r[1]);
                     if (a != a && b != b) return uint64_t{0x7fffffff};
                     if (a != a || b != b) return nan ? uint64_t{0x7fffffff} : a != a ? r[1] : r[0];
                     if (a == b) return std::signbit(a) == max ? r[1] : r[0];
                     return (a > b) == max ? r[0] : r[1];
                   });
    }
  }
  ExpectFloats(
      "abs.f32 d, a", {32, 32}, Rows32(1), [](const Row& r) { return r[0] & 0x7fffffff; }, true);
  ExpectFloats(
      "neg.f32 d, a", {32, 32}, Rows32(1), [](const Row& r) { return r[0] ^ 0x80000000; }, true);
  ExpectFloats("copysign.f32 d, a, b", {32, 32, 32}, Rows32(2),
               [](const Row& r) { return (r[0] & 0x80000000) | (r[1] & 0x7fffffff); });
}

TEST(FloatOpsTest, ComparesOrderedAndUnordered) {
  const std::pair<const char*, bool (*)(float, float)> relations[] = {
      {"eq", [](float a, float b) { return a == b; }},
      {"lt", [](float a, float b) { return a < b; }},
      {"ne", [](float a, float b) { return a < b || a > b; }},
      {"ge", [](float a, float b) { return a >= b; }},
      {"equ", [](float a, float b) { return !(a < b || a > b); }},
      {"neu", [](float a, float b) { return a != b; }},
      {"ltu", [](float a, float b) { return !(a >= b); }},
      {"gtu", [](float a, float b) { return !(a <= b); }},
      {"num", [](float a, float b) { return a == a && b == b; }},
      {"nan", [](float a, float b) { return a != a || b != b; }}};
  for (const auto& [name, holds] : relations) {
    const auto f = holds;
    ExpectFloats(fmt::format("setp.{}.f32 d, a, b", name), {1, 32, 32}, Rows32(2),
                 [&](const Row& r) { return uint64_t{f(F32(r[0]), F32(r[1]))}; });
  }
  ExpectFloats("testp.subnormal.f32 d, a", {1, 32}, Rows32(1),
               [](const Row& r) { return uint64_t{std::fpclassify(F32(r[0])) == FP_SUBNORMAL}; });
}

TEST(FloatOpsTest, DoublePrecision) {
  std::vector<Row> rows;
  for (const double a : {0.0, -1.5, 1e300, -1e-310, 3.0, 0x1.fffffffffffffp1023})
    for (const double b : {1.0, -0.0, 1e-300, 7.0, -2.5})
      for (const double c : {0.0, 1e10, -1e-20}) rows.push_back({BitsOf(a), BitsOf(b), BitsOf(c)});
  const std::vector<int> four(4, 64);
  ExpectFloats("fma.rn.f64 d, a, b, c", four, rows,
               [](const Row& r) { return BitsOf(std::fma(F64(r[0]), F64(r[1]), F64(r[2]))); });
  ExpectFloats("add.f64 d, a, b", four, rows,
               [](const Row& r) { return BitsOf(F64(r[0]) + F64(r[1])); });
  ExpectFloats("max.f64 d, a, c", four, rows,
               [](const Row& r) { return BitsOf(std::fmax(F64(r[0]), F64(r[2]))); });
  ExpectFloats("sqrt.rn.f64 d, e", {64, 64, 64, 64, 64}, {{0, 0, 0, BitsOf(2.0)}},
               [](const Row& r) { return BitsOf(std::sqrt(F64(r[3]))); });
}

// PTX bounds the errors of these. The machine is within them by far; an H100 needs them.
TEST(FloatOpsTest, ApproximateFunctions) {
  const auto of_result = [](double, double right) { return std::fabs(right) * 2e-7 + 1e-9; };
  const auto of_turns = [](double v, double) {
    return std::exp2(std::fabs(v) <= 2 * std::numbers::pi ? -20.5 : -14.7);
  };
  const auto of_tanh = [](double, double right) { return std::fabs(right) * 0x1p-11; };
  const struct {
    const char* name;
    double (*f)(double);
    std::function<double(double v, double right)> bound;
  } functions[] = {{"rcp.approx.f32", [](double v) { return 1 / v; }, of_result},
                   {"rsqrt.approx.f32", [](double v) { return 1 / std::sqrt(v); }, of_result},
                   {"sqrt.rn.f32", [](double v) { return std::sqrt(v); }, of_result},
                   {"sin.approx.f32", [](double v) { return std::sin(v); }, of_turns},
                   {"cos.approx.f32", [](double v) { return std::cos(v); }, of_turns},
                   {"lg2.approx.f32", [](double v) { return std::log2(v); }, of_result},
                   {"ex2.approx.f32", [](double v) { return std::exp2(v); }, of_result},
                   {"tanh.approx.f32", [](double v) { return std::tanh(v); }, of_tanh},
                   {"rcp.rn.f32", [](double v) { return 1 / v; }, of_result},
                   {"sqrt.approx.f32", [](double v) { return std::sqrt(v); }, of_result}};
  std::vector<Row> rows;
  for (const float v : {0.25f, 1.0f, 1.7f, 3.0f, 30.0f, 1e-3f}) rows.push_back({BitsOf(v)});
  for (const auto& [name, f, bound] : functions) {
    const auto got = Execute(fmt::format("{} d, a", name), {32, 32}, rows);
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (size_t i = 0; i < rows.size(); ++i) {
      const double right = f(F32(rows[i][0]));
      EXPECT_NEAR(F32((*got)[i]), right, bound(F32(rows[i][0]), right))
          << name << " of " << F32(rows[i][0]);
    }
  }
  const auto edges = Execute("rcp.approx.ftz.f32 d, a", {32, 32},
                             {{BitsOf(0.0f)}, {BitsOf(-0x1p-140f)}, {BitsOf(kInf)}});
  ASSERT_TRUE(edges.ok());
  EXPECT_EQ(*edges, (std::vector<uint64_t>{BitsOf(kInf), BitsOf(-kInf), BitsOf(0.0f)}));
}

TEST(FloatOpsTest, HalvesRoundOnce) {
  const std::pair<const char*, DType> formats[] = {{"f16", DType::kF16}, {"bf16", DType::kBF16}};
  const std::vector<uint64_t> values = {0,      0x8000, 0x3c00, 0x3c01, 0xbc00, 0x0001,
                                        0x03ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x4248,
                                        0x3555, 0x2e66, 0x6400, 0x1234, 0x3f80, 0x7f7f};
  std::vector<Row> rows;
  for (const uint64_t a : values)
    for (const uint64_t b : values)
      for (const uint64_t c : {0x0000u, 0x3c00u, 0x8001u, 0x1400u, 0x7bffu})
        rows.push_back({a, b, c});
  for (const auto& [name, dtype] : formats) {
    const DType t = dtype;
    const auto value = [&](uint64_t bits) {
      return DecodeNarrowFloat(t, static_cast<uint16_t>(bits));
    };
    const auto encode = [&](long double v) {
      // The exact value goes to the format through a double that is rounded to odd.
      double d = static_cast<double>(v);
      if (static_cast<long double>(d) != v && (std::bit_cast<uint64_t>(d) & 1) == 0) {
        const bool up = v > static_cast<long double>(d);
        d = std::nextafter(d, up ? HUGE_VAL : -HUGE_VAL);
      }
      return d != d ? uint64_t{0x7fff} : uint64_t{EncodeNarrowFloat(t, d)};
    };
    const std::vector<int> four(4, 16);
    ExpectFloats(fmt::format("add.{} d, a, b", name), four, rows, [&](const Row& r) {
      return encode(static_cast<long double>(value(r[0])) + value(r[1]));
    });
    ExpectFloats(fmt::format("mul.{} d, a, b", name), four, rows, [&](const Row& r) {
      return encode(static_cast<long double>(value(r[0])) * value(r[1]));
    });
    ExpectFloats(fmt::format("fma.rn.{} d, a, b, c", name), four, rows, [&](const Row& r) {
      return encode(static_cast<long double>(value(r[0])) * value(r[1]) + value(r[2]));
    });
  }
  ExpectFloats("add.f16x2 d, a, b", {32, 32, 32}, {{0x3c004000, 0x3c003c00}},
               [](const Row&) { return 0x40004200; });
  ExpectFloats("fma.rn.relu.f16x2 d, a, b, c", {32, 32, 32, 32}, {{0x3c00bc00, 0x3c003c00, 0}},
               [](const Row&) { return 0x3c000000; });
}

TEST(FloatOpsTest, ConvertsToIntegers) {
  const std::pair<const char*, double (*)(double)> modes[] = {
      {"rni", [](double v) { return std::nearbyint(v); }},
      {"rzi", [](double v) { return std::trunc(v); }},
      {"rmi", [](double v) { return std::floor(v); }},
      {"rpi", [](double v) { return std::ceil(v); }}};
  for (const auto& [mode, f] : modes) {
    const auto round = f;
    const auto expect = [&](const char* type, int bits, double least, double most) {
      ExpectFloats(
          fmt::format("cvt.{}.{}.f32 d, a", mode, type), {bits, 32}, Rows32(1), [&](const Row& r) {
            const double v = F32(r[0]);
            if (v != v) return uint64_t{0};
            const auto n = static_cast<int64_t>(std::fmin(std::fmax(round(v), least), most));
            return static_cast<uint64_t>(n) & ((uint64_t{1} << bits) - 1);
          });
    };
    expect("s32", 32, -2147483648.0, 2147483647.0);
    expect("u32", 32, 0, 4294967295.0);
    expect("s16", 16, -32768, 32767);
    ExpectFloats(fmt::format("cvt.{}.f32.f32 d, a", mode), {32, 32}, Rows32(1),
                 [&](const Row& r) { return Canonical32(static_cast<float>(round(F32(r[0])))); });
  }
}

TEST(FloatOpsTest, ConvertsBetweenIntegers) {
  const std::vector<Row> rows = {{0},   {1},          {127},        {128},        {255},
                                 {256}, {0x7fffffff}, {0x80000000}, {0xffffffff}, {0xffffff80}};
  ExpectFloats("cvt.s64.s32 d, a", {64, 32}, rows, [](const Row& r) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(r[0])});
  });
  ExpectFloats("cvt.u64.u32 d, a", {64, 32}, rows, [](const Row& r) { return r[0]; });
  ExpectFloats("cvt.s32.s8 d, a", {32, 32}, rows, [](const Row& r) {
    return static_cast<uint64_t>(static_cast<uint32_t>(static_cast<int8_t>(r[0])));
  });
  ExpectFloats("cvt.sat.s8.s32 d, a", {32, 32}, rows, [](const Row& r) {
    return uint64_t{
        static_cast<uint32_t>(std::clamp<int32_t>(static_cast<int32_t>(r[0]), -128, 127))};
  });
  ExpectFloats("cvt.sat.u8.s32 d, a", {32, 32}, rows, [](const Row& r) {
    return uint64_t{static_cast<uint32_t>(std::clamp<int32_t>(static_cast<int32_t>(r[0]), 0, 255))};
  });
  ExpectFloats("cvt.rn.f32.s32 d, a", {32, 32}, rows,
               [](const Row& r) { return BitsOf(static_cast<float>(static_cast<int32_t>(r[0]))); });
  ExpectFloats("cvt.rz.f32.u32 d, a", {32, 32}, rows, [](const Row& r) {
    const float nearest = static_cast<float>(static_cast<uint32_t>(r[0]));
    return BitsOf(static_cast<double>(nearest) > static_cast<double>(r[0])
                      ? std::nextafter(nearest, 0.0f)
                      : nearest);
  });
  ExpectFloats("cvt.rn.f64.u64 d, a", {64, 64}, {{~uint64_t{0}}, {uint64_t{1} << 53 | 1}},
               [](const Row& r) { return BitsOf(static_cast<double>(r[0])); });
}

TEST(FloatOpsTest, ConvertsBetweenFloats) {
  const auto expect = [&](const char* form, DType t) {
    ExpectFloats(fmt::format("cvt.{}.f32 d, a", form), {16, 32}, Rows32(1), [&](const Row& r) {
      const float v = F32(r[0]);
      return v != v ? uint64_t{0x7fff} : uint64_t{EncodeNarrowFloat(t, v)};
    });
  };
  expect("rn.f16", DType::kF16);
  expect("rn.bf16", DType::kBF16);
  std::vector<Row> halves;
  for (uint64_t h = 0; h < 65536; h += 61)
    if ((h & 0x7fff) <= 0x7c00) halves.push_back({h});  // of NaN no bits are promised
  ExpectFloats("cvt.f32.f16 d, a", {32, 16}, halves, [](const Row& r) {
    return BitsOf(static_cast<float>(DecodeNarrowFloat(DType::kF16, static_cast<uint16_t>(r[0]))));
  });
  ExpectFloats("cvt.rz.f16.f32 d, a", {16, 32},
               {{BitsOf(65519.0f)}, {BitsOf(1e9f)}, {BitsOf(-0x1.ffffp-1f)}},
               [](const Row& r) { return F32(r[0]) > 0 ? 0x7bff : 0xbbff; });
  ExpectFloats(
      "cvt.rna.tf32.f32 d, a", {32, 32}, {{0x3f801000}, {0x3f800fff}, {0xbf801000}},
      [](const Row& r) {
        return r[0] == 0x3f800fff ? 0x3f800000 : r[0] == 0x3f801000 ? 0x3f802000 : 0xbf802000;
      });
  ExpectFloats("cvt.rn.f16x2.f32 d, a, b", {32, 32, 32}, {{BitsOf(1.0f), BitsOf(-2.0f)}},
               [](const Row&) { return 0x3c00c000; });
  ExpectFloats("cvt.rn.satfinite.e4m3x2.f32 d, a, b", {16, 32, 32},
               {{BitsOf(1.0f), BitsOf(1e9f)}, {BitsOf(-448.0f), BitsOf(0x1p-9f)}},
               [](const Row& r) { return F32(r[0]) == 1.0f ? 0x387e : 0xfe01; });
  ExpectFloats("cvt.rn.f16x2.e4m3x2 d, a", {32, 16}, {{0x387e}},
               [](const Row&) { return 0x3c005f00; });
  ExpectFloats("cvt.sat.f32.f32 d, a", {32, 32}, Rows32(1), [](const Row& r) {
    const float v = F32(r[0]);
    return v != v || v <= 0 ? BitsOf(0.0f) : BitsOf(std::min(v, 1.0f));
  });
}

}  // namespace
}  // namespace forge::ptx
