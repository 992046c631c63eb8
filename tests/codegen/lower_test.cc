// SPDX-License-Identifier: Apache-2.0
// The formulas of Lower(), computed by the folder: operands are literals, so that results are too.
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "codegen/kernel/analysis.h"
#include "codegen/kernel/literal.h"
#include "codegen/kernel/verify.h"
#include "codegen/lower/semantic_rules.h"
#include "codegen/lower/wide_rules.h"
#include "tests/codegen/kernels.h"
#include "tests/support/ir_values.h"
#include "tests/support/kernel_machine.h"
#include "tests/support/metal_check.h"
#include "tests/support/spirv_check.h"

namespace forge::codegen {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// With float controls and without.
struct LowerTest : ::testing::TestWithParam<bool> {
  Kernel k{.name = "test"};
  Builder b{k};
  Caps caps = [] {
    Caps c;
    c.signed_zero_inf_nan = GetParam();
    return c;
  }();

  Val F32(double v) { return b.Literal(kF32, v); }
  double F(Val v) { return FloatOf(v.type().elem, b.LiteralOf(v).value()); }
  // What an instruction becomes, in halves and whole.
  Wide Halves(const Inst& i, DType from, DType to, std::vector<Wide> x) {
    return WideRule({b, caps}, {i, Type{to}, Type{from}}, x);
  }
  Val Whole(const Inst& i, DType to, const Vals& x) {
    const Val other = SemanticRule(caps, i, Type{to}, x);
    return other ? other : b.Add(i, Type{to}, x);
  }
  Wide Wide64(Code code, std::vector<Wide> x, DType t = DType::kI64) {
    return Halves({.code = code}, t, t, std::move(x));
  }
  Wide Of(int64_t v) {
    return Halves({.code = Code::kLiteral, .literal = static_cast<uint64_t>(v)}, DType::kI64,
                  DType::kI64, {});
  }
  int64_t I(Wide v) {
    return static_cast<int64_t>(b.LiteralOf(v.hi).value() << 32 | b.LiteralOf(v.lo).value());
  }
  bool Bool(Val v) { return b.LiteralOf(v).value() != 0; }
};
INSTANTIATE_TEST_SUITE_P(, LowerTest, ::testing::Bool(), [](const auto& i) {
  return i.param ? "FloatControls" : "NoFloatControls";
});

TEST_P(LowerTest, ExtremesPropagateNaN) {
  const auto extreme = [&](Code code, double x, double y) {
    return F(Whole({.code = code, .aux = kPrecise}, DType::kF32, {F32(x), F32(y)}));
  };
  for (Code code : {Code::kMin, Code::kMax}) {
    EXPECT_TRUE(std::isnan(extreme(code, kNan, 1)));
    EXPECT_TRUE(std::isnan(extreme(code, 1, kNan)));
    EXPECT_EQ(extreme(code, 3, 3), 3);
  }
  EXPECT_EQ(extreme(Code::kMax, -kInf, 2), 2);
  EXPECT_EQ(extreme(Code::kMin, -kInf, 2), -kInf);
}

TEST_P(LowerTest, RoundsTiesOfF64ToEven) {
  const auto round = [&](double v) {
    const Vals x = {b.Literal({DType::kF64}, v)};
    return F(Whole({.code = Code::kRoundEven}, DType::kF64, x));
  };
  for (double v : {0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, -0.25, 0.0, -0.0, 0x1p52 + 1,
                   0.5 - 0x1p-54, 3.75, -7.2, kInf, -kInf}) {
    const double rounded = round(v);
    EXPECT_EQ(rounded, std::nearbyint(v)) << v;
    EXPECT_EQ(std::signbit(rounded), std::signbit(v)) << v;
  }
  EXPECT_TRUE(std::isnan(round(kNan)));
}

// All that a factor can be beside a literal 0, by what the host computes.
TEST_P(LowerTest, ProductsWithZeroKeepNaNAndSigns) {
  const double values[] = {1, -1, kInf, -kInf, 0.0, -0.0, kNan, 1e-40, -3e38};
  const auto same = [](double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  };
  for (double v : values)
    for (double zero : {0.0, -0.0}) {
      const auto f32 = [&](Code code, double x, double y) {
        return F(Whole({.code = code, .aux = kPrecise}, DType::kF32, {F32(x), F32(y)}));
      };
      EXPECT_TRUE(same(v * zero, f32(Code::kMul, v, zero))) << v << " * " << zero;
      EXPECT_TRUE(same(v * zero, f32(Code::kMul, zero, v))) << zero << " * " << v;
      EXPECT_TRUE(same(v / zero, f32(Code::kDiv, v, zero))) << v << " / " << zero;
      EXPECT_TRUE(same(zero / v, f32(Code::kDiv, zero, v))) << zero << " / " << v;
      const double infinite = std::copysign(kInf, zero);
      EXPECT_TRUE(same(v / infinite, f32(Code::kDiv, v, infinite))) << v << " / " << infinite;
    }
}

TEST_P(LowerTest, QuotientsByLargeDivisorsAreRight) {
  for (const float x : {1.0f, -3e38f, 1e30f, 0.0f, HUGE_VALF})
    for (const float y : {1.0f, 0x1p126f, 0x1.8p126f, -0x1p127f, 3.4e38f})
      for (const bool large_divisors : {false, true}) {
        caps.large_divisors = large_divisors;
        EXPECT_EQ(F(Whole({.code = Code::kDiv}, DType::kF32, {F32(x), F32(y)})), x / y)
            << x << " / " << y;
      }
}

// Multiplications that a quotient brings with it where drivers flush reciprocals.
TEST(LowerKernelTest, ScalesDivisorsThatMayBeLarge) {
  const auto products = [](auto divide, bool large_divisors) {
    Caps caps = RichCaps();
    caps.large_divisors = large_divisors;
    const Kernel lowered = Lower(MapKernel("quotient", kF32, kF32, divide), caps);
    int64_t found = 0;
    for (const Block& block : lowered.blocks)
      found += std::ranges::count_if(block.insts, [&](const Inst& i) {
        return i.code == Code::kMul && lowered.TypeOf(i.result) == kF32;
      });
    return found;
  };
  const auto by_anything = [](Val x) { return Like(3, x) / x; };
  EXPECT_EQ(products(by_anything, false), 2);
  EXPECT_EQ(products(by_anything, true), 0);
  EXPECT_EQ(products([](Val x) { return x / 3.0; }, false), 0);
}

// What a driver does not see it cannot fold.
TEST(LowerKernelTest, HidesLiteralsOfZeroFromDrivers) {
  const Kernel k = MakeKernel("zeros", [&](Builder& b, Val i) {
    const Val x = b.Load(b.AddView(Reads("x", kF32, 0)), i);
    const Val sum = x * 0.0 + x / 0.0 + -0.0 / x + fma(x, 0.0, x);
    b.Store(b.AddView(Writes("y", kF32, 1)), i, sum);
  });
  const Kernel lowered = Lower(k, RichCaps());
  for (const Block& block : lowered.blocks)
    for (const Inst& i : block.insts)
      EXPECT_FALSE(IsOneOf(i.code, {Code::kMul, Code::kDiv, Code::kFma}) &&
                   lowered.TypeOf(i.result) == kF32)
          << ToText(lowered);
}

TEST_P(LowerTest, FloatsSaturateInIntegers) {
  for (DType t : {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32})
    for (double v : {0.0,           -0.9,         1.5,     -1.5,  127.0, 128.0,        -129.0,
                     255.0,         256.0,        65535.0, 1e5,   -1e5,  2147483520.0, 2147483648.0,
                     -2147483648.0, 4294967040.0, 1e20,    -1e20, kInf,  -kInf,        kNan})
      EXPECT_EQ(b.LiteralOf(Whole({.code = Code::kConvert}, t, {F32(v)})).value(), ToBits(t, v))
          << v << " to " << Name(t);
}

TEST_P(LowerTest, HalvesAddMultiplyAndCompare) {
  const int64_t values[] = {
      0, 1, -1, 3, 0xffffffff, 0x100000000, -0x100000001, 0x123456789abcdef, kLowest, kHighest};
  for (int64_t x : values) {
    const auto ux = static_cast<uint64_t>(x);
    EXPECT_EQ(I(Wide64(Code::kNeg, {Of(x)})), static_cast<int64_t>(-ux));
    for (int64_t y : values) {
      const auto uy = static_cast<uint64_t>(y);
      EXPECT_EQ(I(Wide64(Code::kAdd, {Of(x), Of(y)})), static_cast<int64_t>(ux + uy));
      EXPECT_EQ(I(Wide64(Code::kSub, {Of(x), Of(y)})), static_cast<int64_t>(ux - uy));
      EXPECT_EQ(I(Wide64(Code::kMul, {Of(x), Of(y)})), static_cast<int64_t>(ux * uy));
      EXPECT_EQ(Bool(Wide64(Code::kLt, {Of(x), Of(y)}).lo), x < y);
      EXPECT_EQ(Bool(Wide64(Code::kLt, {Of(x), Of(y)}, DType::kU64).lo), ux < uy);
      EXPECT_EQ(Bool(Wide64(Code::kEq, {Of(x), Of(y)}).lo), x == y);
    }
  }
}

TEST_P(LowerTest, HalvesShift) {
  for (int64_t x : {int64_t{1}, int64_t{-1}, int64_t{0x123456789abcdef}, kLowest}) {
    for (int n : {0, 1, 31, 32, 33, 63}) {
      const Wide by{b.Literal(kU32, n), {}};
      const auto ux = static_cast<uint64_t>(x);
      EXPECT_EQ(I(Wide64(Code::kShl, {Of(x), by})), static_cast<int64_t>(ux << n))
          << x << " by " << n;
      EXPECT_EQ(I(Wide64(Code::kShr, {Of(x), by})), x >> n) << x << " by " << n;
      EXPECT_EQ(I(Wide64(Code::kShr, {Of(x), by}, DType::kU64)), static_cast<int64_t>(ux >> n))
          << x << " by " << n;
    }
  }
}

TEST_P(LowerTest, HalvesComeFromFloats) {
  for (double v : {0.0, 1.9, -1.9, 4294967296.0, -4294967808.0, 9.2e18, 9.3e18, -9.3e18, 1.8e19,
                   1.9e19, kInf, -kInf, kNan}) {
    const double x = F(F32(v));
    for (DType t : {DType::kI64, DType::kU64}) {
      const Wide made = Halves({.code = Code::kConvert}, DType::kF32, t, {{F32(v), {}}});
      EXPECT_EQ(I(made), static_cast<int64_t>(ToBits(t, x))) << v;
    }
  }
}

TEST_P(LowerTest, HalvesRoundOnceInFloats) {
  const auto to_float = [&](int64_t x, DType from, DType to) {
    return F(Halves({.code = Code::kConvert}, from, to, {Of(x)}).lo);
  };
  for (int64_t x : {int64_t{0}, int64_t{1}, int64_t{-7}, int64_t{16777217}, int64_t{0x7fffffffff},
                    int64_t{0x8000004000000}, int64_t{0x8000004000001}, int64_t{-0x8000004000001},
                    int64_t{0x1000001}, kLowest, kHighest}) {
    EXPECT_EQ(to_float(x, DType::kI64, DType::kF32), static_cast<float>(x)) << x;
    EXPECT_EQ(to_float(x, DType::kU64, DType::kF32), static_cast<float>(static_cast<uint64_t>(x)));
    EXPECT_EQ(to_float(x, DType::kI64, DType::kF64), static_cast<double>(x)) << x;
  }
}

// What the kernel makes of 256 numbers, among them the edges of every type.
// One NaN is as good as another.
template <class T>
void MakeNansEqual(std::vector<uint8_t>& bytes) {
  for (size_t n = 0; n + sizeof(T) <= bytes.size(); n += sizeof(T)) {
    T v;
    std::memcpy(&v, &bytes[n], sizeof(T));
    if (std::isnan(v)) std::memset(&bytes[n], 0xff, sizeof(T));
  }
}

std::vector<uint8_t> Outputs(const Kernel& k) {
  std::vector<uint8_t> x(256 * 32), y(256 * 32);
  uint64_t state = 1;
  for (size_t n = 0; n + 8 <= x.size(); n += 8) {
    state = HashMix(state, n);
    constexpr uint64_t kEdges[] = {0, 1, ~0ull, 1ull << 63, 1ull << 31, 0x7fffffff, 0xffffffff};
    const uint64_t v = n % 3 == 0 ? kEdges[state % 7] : state >> (n / 8 % 5 * 13);
    std::memcpy(&x[n], &v, 8);
  }
  std::vector<uint8_t>* const operands[] = {&x, &y};
  const absl::Status s = forge::testing::RunKernel(k, operands);
  EXPECT_TRUE(s.ok()) << s << ToText(k);
  if (k.views[1].elem.elem == DType::kF64) MakeNansEqual<double>(y);
  if (k.views[1].elem.elem == DType::kF32) MakeNansEqual<float>(y);
  return y;
}

TEST(LowerKernelTest, MeansTheSameWithoutWideIntegers) {
  std::vector<Kernel> kernels;
  for (const Type& t : {kI64, kU64, kI64.Lanes(2), kU64.Lanes(4)}) kernels.push_back(Arithmetic(t));
  for (const Type& t : {kI8, kU8, kU16, kF16, kI32, kU32, kF32, kF64, kU64}) {
    for (const Type& wide : {kI64, kU64}) {
      kernels.push_back(Conversion(t, wide));
      kernels.push_back(Conversion(wide, t));
    }
  }
  // Carried through control.
  kernels.push_back(MapKernel("control", kI64, kI64, [](Val x) {
    Builder& b = *x.b;
    const Vals v =
        b.For({b.Int(0), b.Int(5), b.Int(1)}, {x, b.Literal(kF32, 0)}, [&](Val i, Vals v) {
          const Val wide = convert(i, DType::kI64);
          const Val next =
              b.If(v[0] < 7, [&] { return Vals{v[0] * 3}; }, [&] { return Vals{v[0] - wide}; })[0];
          return Vals{next, v[1] + 1};
        });
    return v[0] + convert(v[1], DType::kI64);
  }));
  for (const Kernel& k : kernels) {
    const Kernel lowered = Lower(k, Caps{});
    EXPECT_EQ(VerifyStructure(lowered), "");
    EXPECT_EQ(Outputs(k), Outputs(lowered)) << ToText(k) << ToText(lowered);
  }
}

// 256 invocations at seven numbers in memory and four in each workgroup's own.
Kernel FloatAtomics(AtomicKind kind) {
  return MakeKernel("float_atomics", [kind](Builder& b, Val i) {
    View out = Writes("y", kF32, 1);
    out.reads = true;
    const uint16_t x = b.AddView(Reads("x", kF32, 0)), y = b.AddView(out);
    const uint16_t tile = b.AddView(Shared("tile", kF32, 4));
    const Val local = b.Builtin(BuiltinKind::kLocalX);
    b.If(local < 4, [&] { b.Store(tile, local, b.Load(x, local)); });
    b.Barrier();
    b.Atomic(kind, tile, i & 3, b.Load(x, i));
    b.Atomic(kind, y, i % 7, b.Load(x, i));
    b.Barrier();
    b.If(local < 4, [&] { b.Store(y, i + 8, b.Load(tile, local)); });
    b.Store(y, i + 300, b.Atomic(kind, y, i + 600, b.Load(x, i)));
  });
}

TEST(LowerKernelTest, FloatAtomicsAreExchangesWhereThereAreNone) {
  const auto run = [](const Kernel& k) {
    std::vector<uint8_t> x(256 * 4), y(900 * 4);
    for (size_t n = 0; n < 256; ++n) {
      const float v = n == 77 ? NAN : static_cast<float>(n * 37 % 101) - 50;
      std::memcpy(&x[n * 4], &v, 4);
    }
    std::vector<uint8_t>* const operands[] = {&x, &y};
    const absl::Status s = forge::testing::RunKernel(k, operands);
    EXPECT_TRUE(s.ok()) << s << ToText(k);
    MakeNansEqual<float>(y);
    return y;
  };
  for (const AtomicKind kind :
       {AtomicKind::kAdd, AtomicKind::kMin, AtomicKind::kMax, AtomicKind::kExchange}) {
    const Kernel k = FloatAtomics(kind), lowered = Lower(k, Caps{});
    EXPECT_EQ(VerifyStructure(k), "");
    EXPECT_EQ(VerifyStructure(lowered), "");
    EXPECT_EQ(ToText(lowered).find("f32 = atomic"), std::string::npos) << ToText(lowered);
    EXPECT_EQ(run(k), run(lowered)) << ToText(lowered);
    EXPECT_EQ(SpirvErrors(PrintSpirv(k, Caps{})), "");
    EXPECT_EQ(MetalErrors(PrintSpirv(k, Caps{})), "");
  }
}

TEST(LowerKernelTest, FloatAtomicsThatADeviceHasStay) {
  Caps caps;
  caps.f32_atomic_add = true;
  const Kernel k = FloatAtomics(AtomicKind::kAdd);
  EXPECT_NE(ToText(Lower(k, caps)).find("f32 = atomic.add"), std::string::npos);
  EXPECT_EQ(ToText(Lower(FloatAtomics(AtomicKind::kMax), caps)).find("f32 = atomic"),
            std::string::npos);
  EXPECT_EQ(SpirvErrors(PrintSpirv(k, caps)), "");
}

TEST(LowerKernelTest, MeansTheSameForTheOtherTypes) {
  for (bool float_controls : {false, true}) {
    Caps caps = RichCaps();
    caps.signed_zero_inf_nan = float_controls;
    caps.int_dot = false;
    for (const Type& t : {kI32, kU32, kF32, kF64, kF32.Lanes(4)})
      EXPECT_EQ(Outputs(Arithmetic(t)), Outputs(Lower(Arithmetic(t), caps))) << ToText(t);
    for (const Type& from : {kI8, kU8, kF16, kI32, kU32, kF32})
      for (const Type& to : {kI8, kU8, kU16, kF16, kI32, kU32, kF32})
        EXPECT_EQ(Outputs(Conversion(from, to)), Outputs(Lower(Conversion(from, to), caps)))
            << ToText(from) << " to " << ToText(to);
  }
}

// Loops one after the other, inside each other, and such as begin elsewhere in each invocation.
Kernel ManyTrips() {
  return MapKernel("trips", kI32, kI32, [](Val x) {
    Builder& b = *x.b;
    const auto range = [&](Val begin, int64_t end, int64_t step) {
      return Builder::Range{begin, b.Int(end), b.Int(step)};
    };
    const auto add = [&](Val i, const Vals& v) { return Vals{v[0] * 3 + i}; };
    Vals v = b.For(range(b.Int(0), 301, 1), {x}, add);
    v = b.For(range(b.Builtin(BuiltinKind::kLocalX), 907, 7), v, add);
    return b.For(range(b.Int(2), 77, 2), v, [&](Val i, const Vals& outer) {
      const Vals inner = b.For(range(min(i, b.Int(9)), 13, 1), outer, add);
      return b.If(
          inner[0] < i, [&] { return b.For(range(i, 80, 3), inner, add); },
          [&] { return Vals{inner[0] - i}; });
    })[0];
  });
}

TEST(LimitTripsTest, MeansTheSameInFewerTrips) {
  const Kernel k = ManyTrips();
  const int64_t trips = MostTrips(k);
  EXPECT_GT(trips, 1000);
  for (const int64_t most : {trips, trips - 1, int64_t{600}, int64_t{100}}) {
    const Kernel fewer = LimitTrips(k, most);
    EXPECT_EQ(VerifyStructure(fewer), "");
    EXPECT_LE(MostTrips(fewer), most);
    EXPECT_EQ(Outputs(k), Outputs(fewer)) << most << ToText(fewer);
  }
  EXPECT_EQ(ToText(LimitTrips(k, trips)), ToText(k));
}

TEST(LimitTripsTest, CountsLoopsWhoseEndMemoryDecidesAsOne) {
  const Kernel k = MapKernel("loop", kI32, kI32, [](Val x) {
    Builder& b = *x.b;
    return b.For({b.Int(0), x, b.Int(1)}, {x},
                 [](Val i, const Vals& v) { return Vals{v[0] + i}; })[0];
  });
  EXPECT_EQ(MostTrips(k), 1);
}

// y[i] = 2 x[i], both in parts of 64 elements, the last of 8; each part is memory of its own.
TEST(LowerKernelTest, FindsThePartOfAnElement) {
  for (const Type& t : {kI32, kI64, kI32.Lanes(4), kI64.Lanes(4)}) {
    SCOPED_TRACE(ToText(t));
    Kernel k = MapKernel("parts", t, t, [](Val x) { return x + x; });
    k.views[0] = InParts(k.views[0], 4, 64);
    k.views[1] = InParts(Writes("y", t, 4), 4, 64);
    const Kernel lowered = Lower(k, Caps{});
    EXPECT_EQ(VerifyStructure(lowered), "");
    std::vector<std::vector<uint8_t>> parts;
    std::vector<std::vector<uint8_t>*> operands;
    for (int n = 0; n < 8; ++n) parts.emplace_back((n % 4 < 3 ? 64 : 8) * ElementBytes(t));
    for (std::vector<uint8_t>& p : parts) operands.push_back(&p);
    for (int n = 0; n < 4; ++n) std::fill(parts[n].begin(), parts[n].end(), uint8_t{1} << n);
    const absl::Status s = forge::testing::RunKernel(lowered, operands);
    ASSERT_TRUE(s.ok()) << s << ToText(lowered);
    for (int n = 0; n < 4; ++n)
      EXPECT_EQ(parts[4 + n], std::vector<uint8_t>(parts[n].size(), uint8_t{2} << n)) << n;
  }
}

TEST(LowerKernelTest, DoesAtomicsInThePartOfAnElement) {
  const Kernel k = MakeKernel("atomics", [](Builder& b, Val i) {
    View counts = InParts(Writes("y", kU32, 0), 3, 64);
    counts.reads = true;
    const uint16_t y = b.AddView(counts);
    b.If(i < 160, [&] {
      const Val before = b.Atomic(AtomicKind::kOr, y, i, b.Bits(kU32, 8));
      b.Atomic(AtomicKind::kOr, y, i, before << 4.0);
    });
  });
  std::vector<std::vector<uint8_t>> parts(3, std::vector<uint8_t>(64 * 4));
  for (size_t n = 0; n < 3; ++n)
    for (size_t e = 0; e < 64; ++e) parts[n][4 * e] = static_cast<uint8_t>(n + 1);
  std::vector<std::vector<uint8_t>*> operands = {&parts[0], &parts[1], &parts[2]};
  const absl::Status s = forge::testing::RunKernel(Lower(k, Caps{}), operands);
  ASSERT_TRUE(s.ok()) << s;
  for (size_t n = 0; n < 3; ++n)
    for (size_t e = 0; e < 64; ++e)
      ASSERT_EQ(parts[n][4 * e], n * 64 + e < 160 ? 17 * (n + 1) + 8 : n + 1) << n << ", " << e;
}

}  // namespace
}  // namespace forge::codegen
