// SPDX-License-Identifier: Apache-2.0
// Integer and logic opcodes against their definitions in the PTX ISA, over all pairs of edge
// values.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/ptx/one_op.h"

namespace forge::ptx {
namespace {

using Row = std::vector<uint64_t>;
using Reference = std::function<uint64_t(const Row&)>;

template <class T>
std::vector<uint64_t> Edges() {
  using U = std::make_unsigned_t<T>;
  std::vector<uint64_t> v;
  for (const int64_t x : {0, 1, 2, 3, 7, 31, 32, 33, 100, -1, -2, -5, -100})
    v.push_back(static_cast<U>(x));
  v.push_back(static_cast<U>(std::numeric_limits<T>::min()));
  v.push_back(static_cast<U>(std::numeric_limits<T>::max()));
  v.push_back(static_cast<U>(std::numeric_limits<T>::max() - 1));
  v.push_back(static_cast<U>(0x123456789abcdef0u));
  return v;
}

// All combinations of values of `operands` registers.
std::vector<Row> Combinations(const std::vector<uint64_t>& values, int operands) {
  std::vector<Row> rows = {{}};
  for (int i = 0; i < operands; ++i) {
    std::vector<Row> longer;
    for (const Row& row : rows)
      for (const uint64_t v : values) {
        longer.push_back(row);
        longer.back().push_back(v);
      }
    rows = std::move(longer);
  }
  return rows;
}

void ExpectAll(const std::string& instruction, const std::vector<int>& bits,
               const std::vector<Row>& rows, const Reference& reference) {
  const uint64_t mask = bits[0] == 64 ? ~uint64_t{0} : (uint64_t{1} << bits[0]) - 1;
  for (size_t start = 0; start < rows.size(); start += 1024) {
    const std::vector<Row> part(
        rows.begin() + static_cast<ptrdiff_t>(start),
        rows.begin() + static_cast<ptrdiff_t>(std::min(start + 1024, rows.size())));
    const auto got = Execute(instruction, bits, part);
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (size_t i = 0; i < part.size(); ++i) {
      ASSERT_EQ((*got)[i], reference(part[i]) & mask)
          << instruction << " of " << ::testing::PrintToString(part[i]);
    }
  }
}

// Signed or unsigned integers of the type's width, in 128 bits, where nothing overflows.
template <class T>
__int128 Value(uint64_t bits) {
  return static_cast<T>(bits);
}

template <class T>
void TestArithmetic(const std::string& type) {
  constexpr int bits = 8 * sizeof(T);
  const auto pairs = Combinations(Edges<T>(), 2);
  const std::vector<int> three(3, bits);
  const auto binary = [&](const std::string& name, auto f) {
    ExpectAll(name + "." + type + " d, a, b", three, pairs, [&](const Row& r) {
      return static_cast<uint64_t>(f(Value<T>(r[0]), Value<T>(r[1])));
    });
  };
  using W = __int128;
  binary("add", [](W a, W b) { return a + b; });
  binary("sub", [](W a, W b) { return a - b; });
  binary("mul.lo", [](W a, W b) {
    return static_cast<W>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
  });
  if (bits < 64) binary("mul.hi", [](W a, W b) { return (a * b) >> bits; });
  binary("min", [](W a, W b) { return a < b ? a : b; });
  binary("max", [](W a, W b) { return a > b ? a : b; });
  auto nonzero = pairs;
  std::erase_if(nonzero, [](const Row& r) { return r[1] == 0; });
  for (const bool rem : {false, true})
    ExpectAll((rem ? "rem." : "div.") + type + " d, a, b", three, nonzero, [&](const Row& r) {
      const W a = Value<T>(r[0]), b = Value<T>(r[1]);
      return static_cast<uint64_t>(rem ? a % b : a / b);
    });
  if (bits < 64)
    ExpectAll("mul.wide." + type + " d, a, b", {2 * bits, bits, bits}, pairs,
              [&](const Row& r) { return static_cast<uint64_t>(Value<T>(r[0]) * Value<T>(r[1])); });
  ExpectAll("sad." + type + " d, a, b, 5", three, pairs, [&](const Row& r) {
    const W difference = Value<T>(r[0]) - Value<T>(r[1]);
    return static_cast<uint64_t>(5 + (difference < 0 ? -difference : difference));
  });
}

TEST(IntegerOpsTest, Arithmetic) {
  TestArithmetic<uint16_t>("u16");
  TestArithmetic<int16_t>("s16");
  TestArithmetic<uint32_t>("u32");
  TestArithmetic<int32_t>("s32");
  TestArithmetic<uint64_t>("u64");
  TestArithmetic<int64_t>("s64");
}

TEST(IntegerOpsTest, SaturatingAndUnary) {
  const auto pairs = Combinations(Edges<int32_t>(), 2);
  const auto clamp = [](int64_t v) {
    return static_cast<uint64_t>(std::min<int64_t>(std::max<int64_t>(v, INT32_MIN), INT32_MAX));
  };
  ExpectAll("add.sat.s32 d, a, b", {32, 32, 32}, pairs, [&](const Row& r) {
    return clamp(int64_t{static_cast<int32_t>(r[0])} + static_cast<int32_t>(r[1]));
  });
  ExpectAll("sub.sat.s32 d, a, b", {32, 32, 32}, pairs, [&](const Row& r) {
    return clamp(int64_t{static_cast<int32_t>(r[0])} - static_cast<int32_t>(r[1]));
  });
  const auto single = Combinations(Edges<int32_t>(), 1);
  ExpectAll("abs.s32 d, a", {32, 32}, single, [](const Row& r) {
    const int64_t v = static_cast<int32_t>(r[0]);
    return static_cast<uint64_t>(v < 0 ? -v : v);
  });
  ExpectAll("neg.s32 d, a", {32, 32}, single, [](const Row& r) { return 0 - r[0]; });
  ExpectAll("popc.b32 d, a", {32, 32}, single,
            [](const Row& r) { return __builtin_popcountll(r[0]); });
  ExpectAll("popc.b64 d, a", {32, 64}, Combinations(Edges<int64_t>(), 1),
            [](const Row& r) { return __builtin_popcountll(r[0]); });
  ExpectAll("clz.b32 d, a", {32, 32}, single, [](const Row& r) {
    return r[0] == 0 ? 32 : __builtin_clz(static_cast<uint32_t>(r[0]));
  });
  ExpectAll("clz.b64 d, a", {32, 64}, Combinations(Edges<int64_t>(), 1),
            [](const Row& r) { return r[0] == 0 ? 64 : __builtin_clzll(r[0]); });
  ExpectAll("brev.b32 d, a", {32, 32}, single, [](const Row& r) {
    uint64_t v = 0;
    for (int i = 0; i < 32; ++i) v = v << 1 | (r[0] >> i & 1);
    return v;
  });
  ExpectAll("cnot.b32 d, a", {32, 32}, single, [](const Row& r) { return uint64_t{r[0] == 0}; });
  ExpectAll("not.b16 d, a", {16, 16}, Combinations(Edges<uint16_t>(), 1),
            [](const Row& r) { return ~r[0]; });
}

TEST(IntegerOpsTest, MultiplyAdd) {
  const std::vector<uint64_t> few = {0, 1, 0xffffffff, 0x80000000, 0x7fffffff, 12345};
  const auto rows = Combinations(few, 3);
  const std::vector<int> four(4, 32);
  ExpectAll("mad.lo.s32 d, a, b, c", four, rows, [](const Row& r) { return r[0] * r[1] + r[2]; });
  ExpectAll("mad.hi.u32 d, a, b, c", four, rows,
            [](const Row& r) { return (r[0] * r[1] >> 32) + r[2]; });
  ExpectAll("mad.hi.s32 d, a, b, c", four, rows, [](const Row& r) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(r[0])} * static_cast<int32_t>(r[1]) >>
                                 32) +
           r[2];
  });
  ExpectAll("mad.wide.u32 d, a, b, c", {64, 32, 32, 64}, rows,
            [](const Row& r) { return r[0] * r[1] + r[2]; });
  ExpectAll("mad24.lo.u32 d, a, b, c", four, rows,
            [](const Row& r) { return (r[0] & 0xffffff) * (r[1] & 0xffffff) + r[2]; });
  ExpectAll("dp4a.s32.s32 d, a, b, c", four, rows, [](const Row& r) {
    int32_t sum = static_cast<int32_t>(r[2]);
    for (int k = 0; k < 4; ++k)
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                                 static_cast<uint32_t>(static_cast<int8_t>(r[0] >> (8 * k)) *
                                                       static_cast<int8_t>(r[1] >> (8 * k))));
    return static_cast<uint64_t>(sum);
  });
  ExpectAll("dp4a.u32.s32 d, a, b, c", four, rows, [](const Row& r) {
    uint32_t sum = static_cast<uint32_t>(r[2]);
    for (int k = 0; k < 4; ++k)
      sum += static_cast<uint32_t>(static_cast<uint8_t>(r[0] >> (8 * k)) *
                                   static_cast<int8_t>(r[1] >> (8 * k)));
    return uint64_t{sum};
  });
  ExpectAll("dp2a.hi.s32.s32 d, a, b, c", four, rows, [](const Row& r) {
    uint32_t sum = static_cast<uint32_t>(r[2]);
    for (int k = 0; k < 2; ++k)
      sum += static_cast<uint32_t>(static_cast<int16_t>(r[0] >> (16 * k)) *
                                   static_cast<int8_t>(r[1] >> (16 + 8 * k)));
    return uint64_t{sum};
  });
}

TEST(IntegerOpsTest, LogicAndShifts) {
  const auto pairs = Combinations(Edges<uint32_t>(), 2);
  const std::vector<int> three(3, 32);
  ExpectAll("and.b32 d, a, b", three, pairs, [](const Row& r) { return r[0] & r[1]; });
  ExpectAll("or.b32 d, a, b", three, pairs, [](const Row& r) { return r[0] | r[1]; });
  ExpectAll("xor.b32 d, a, b", three, pairs, [](const Row& r) { return r[0] ^ r[1]; });
  ExpectAll("shl.b32 d, a, b", three, pairs,
            [](const Row& r) { return r[1] > 31 ? 0 : r[0] << r[1]; });
  ExpectAll("shr.u32 d, a, b", three, pairs,
            [](const Row& r) { return r[1] > 31 ? 0 : r[0] >> r[1]; });
  ExpectAll("shr.s32 d, a, b", three, pairs, [](const Row& r) {
    return static_cast<uint64_t>(static_cast<int32_t>(r[0]) >> (r[1] > 31 ? 31 : r[1]));
  });
  ExpectAll("shr.s64 d, a, b", {64, 64, 32}, Combinations(Edges<int64_t>(), 2), [](const Row& r) {
    const uint32_t n = static_cast<uint32_t>(r[1]);
    return static_cast<uint64_t>(static_cast<int64_t>(r[0]) >> (n > 63 ? 63 : n));
  });
  const auto rows = Combinations({0, 1, 0x80000001, 0xdeadbeef, 4, 31, 32, 33}, 3);
  const std::vector<int> four(4, 32);
  ExpectAll("shf.l.wrap.b32 d, a, b, c", four, rows,
            [](const Row& r) { return ((r[1] << 32 | r[0]) << (r[2] & 31)) >> 32; });
  ExpectAll("shf.r.wrap.b32 d, a, b, c", four, rows,
            [](const Row& r) { return (r[1] << 32 | r[0]) >> (r[2] & 31); });
  ExpectAll("shf.r.clamp.b32 d, a, b, c", four, rows,
            [](const Row& r) { return (r[1] << 32 | r[0]) >> std::min<uint64_t>(r[2], 32); });
  for (const int table : {0x80, 0xfe, 0x96, 0x1b, 0xca})
    ExpectAll(fmt::format("lop3.b32 d, a, b, c, {}", table), four, rows, [&](const Row& r) {
      uint64_t v = 0;
      for (int i = 0; i < 32; ++i)
        v |= uint64_t{(table >> ((r[0] >> i & 1) * 4 + (r[1] >> i & 1) * 2 + (r[2] >> i & 1)) &
                       1) != 0}
             << i;
      return v;
    });
}

TEST(IntegerOpsTest, BitFields) {
  const std::vector<uint64_t> values = {0, 1, 0x80000000, 0xffffffff, 0xdeadbeef, 5, 31, 32, 40};
  const auto rows = Combinations(values, 3);
  const std::vector<int> four(4, 32);
  // As the ISA writes it: bits from position b, c of them, the sign bit beyond.
  const auto bfe = [](const Row& r, bool is_signed) {
    const uint32_t pos = r[1] & 0xff, length = r[2] & 0xff;
    const uint32_t sign =
        !is_signed || length == 0 ? 0 : r[0] >> std::min(pos + length - 1, 31u) & 1;
    uint64_t v = 0;
    for (uint32_t i = 0; i < 32; ++i)
      v |= (i < length && pos + i <= 31 ? r[0] >> (pos + i) & 1 : sign) << i;
    return v;
  };
  ExpectAll("bfe.u32 d, a, b, c", four, rows, [&](const Row& r) { return bfe(r, false); });
  ExpectAll("bfe.s32 d, a, b, c", four, rows, [&](const Row& r) { return bfe(r, true); });
  ExpectAll("bfi.b32 d, a, b, c, e", {32, 32, 32, 32, 32},
            Combinations({0, 1, 0xffffffff, 0xdeadbeef, 7, 31, 32}, 4), [](const Row& r) {
              const uint32_t pos = r[2] & 0xff, length = r[3] & 0xff;
              uint64_t v = r[1];
              for (uint32_t i = 0; i < length && pos + i <= 31; ++i) {
                v &= ~(uint64_t{1} << (pos + i));
                v |= (i < 32 ? r[0] >> i & 1 : 0) << (pos + i);
              }
              return v;
            });
  ExpectAll("bfind.u32 d, a", {32, 32}, Combinations(values, 1), [](const Row& r) {
    for (int i = 31; i >= 0; --i)
      if ((r[0] >> i & 1) != 0) return static_cast<uint64_t>(i);
    return ~uint64_t{0};
  });
  ExpectAll("bfind.s32 d, a", {32, 32}, Combinations(values, 1), [](const Row& r) {
    const uint64_t v = (r[0] >> 31) != 0 ? ~r[0] & 0xffffffff : r[0];
    for (int i = 31; i >= 0; --i)
      if ((v >> i & 1) != 0) return static_cast<uint64_t>(i);
    return ~uint64_t{0};
  });
  ExpectAll("prmt.b32 d, a, b, c", four,
            Combinations({0x00010203, 0x84858687, 0x3210, 0x7654, 0x1234, 0xfedc, 0x0007}, 3),
            [](const Row& r) {
              const uint64_t both = r[1] << 32 | r[0];
              uint64_t v = 0;
              for (int k = 0; k < 4; ++k) {
                const uint64_t select = r[2] >> (4 * k) & 15,
                               byte = both >> (8 * (select & 7)) & 0xff;
                v |= ((select & 8) != 0 ? ((byte & 0x80) != 0 ? 0xff : 0) : byte) << (8 * k);
              }
              return v;
            });
}

TEST(IntegerOpsTest, Carries) {
  const std::vector<uint64_t> values = {0, 1, 0xffffffff, 0x80000000, 0x7fffffff};
  const auto pairs = Combinations(values, 4);
  // A 64-bit sum, made of two halves: d is its upper half.
  const std::vector<int> five(5, 32);
  ExpectAll("add.cc.u32 d, a, c; addc.u32 d, b, e", five, pairs,
            [](const Row& r) { return ((r[1] << 32 | r[0]) + (r[3] << 32 | r[2])) >> 32; });
  ExpectAll("sub.cc.u32 d, a, c; subc.u32 d, b, e", five, pairs,
            [](const Row& r) { return ((r[1] << 32 | r[0]) - (r[3] << 32 | r[2])) >> 32; });
  ExpectAll("mad.lo.cc.u32 d, a, b, c; madc.hi.u32 d, a, b, e", five, pairs,
            [](const Row& r) { return (r[0] * r[1] + (r[3] << 32 | r[2])) >> 32; });
}

TEST(IntegerOpsTest, CompareAndSelect) {
  const auto pairs = Combinations(Edges<int32_t>(), 2);
  const auto compare = [&](const std::string& relation, const std::string& type, auto f) {
    ExpectAll("setp." + relation + "." + type + " d, a, b", {1, 32, 32}, pairs, [&](const Row& r) {
      const bool is_signed = type[0] == 's';
      const int64_t a = is_signed ? static_cast<int32_t>(r[0]) : static_cast<int64_t>(r[0]);
      const int64_t b = is_signed ? static_cast<int32_t>(r[1]) : static_cast<int64_t>(r[1]);
      return uint64_t{f(a, b)};
    });
  };
  for (const char* type : {"s32", "u32"}) {
    compare("eq", type, [](int64_t a, int64_t b) { return a == b; });
    compare("ne", type, [](int64_t a, int64_t b) { return a != b; });
    compare("lt", type, [](int64_t a, int64_t b) { return a < b; });
    compare("le", type, [](int64_t a, int64_t b) { return a <= b; });
    compare("gt", type, [](int64_t a, int64_t b) { return a > b; });
    compare("ge", type, [](int64_t a, int64_t b) { return a >= b; });
  }
  compare("lo", "u32", [](int64_t a, int64_t b) { return a < b; });
  compare("hs", "u32", [](int64_t a, int64_t b) { return a >= b; });
  ExpectAll("setp.lt.and.s32 d, a, b, c", {1, 32, 32, 1}, Combinations({0, 1}, 3),
            [](const Row& r) { return uint64_t{r[0] < r[1] && r[2] != 0}; });
  ExpectAll("setp.lt.xor.s32 d, a, b, !c", {1, 32, 32, 1}, Combinations({0, 1}, 3),
            [](const Row& r) { return uint64_t{(r[0] < r[1]) != (r[2] == 0)}; });
  ExpectAll("selp.b32 d, a, b, c", {32, 32, 32, 1}, Combinations({0, 1}, 3),
            [](const Row& r) { return r[2] != 0 ? r[0] : r[1]; });
  ExpectAll("slct.s32.s32 d, a, b, c", {32, 32, 32, 32},
            Combinations({0, 5, 0xffffffff, 0x80000000}, 3),
            [](const Row& r) { return static_cast<int32_t>(r[2]) >= 0 ? r[0] : r[1]; });
  ExpectAll("set.eq.u32.s32 d, a, b", {32, 32, 32}, pairs,
            [](const Row& r) { return r[0] == r[1] ? 0xffffffffu : 0; });
  ExpectAll("xor.pred d, a, b", {1, 1, 1}, Combinations({0, 1}, 2),
            [](const Row& r) { return r[0] ^ r[1]; });
}

TEST(IntegerOpsTest, PackedHalvesOfMov) {
  ExpectAll("{ .reg .b16 l, h; mov.b32 {l, h}, a; mov.b32 d, {h, l}; }", {32, 32},
            Combinations(Edges<uint32_t>(), 1),
            [](const Row& r) { return (r[0] << 16 | r[0] >> 16) & 0xffffffff; });
  ExpectAll("mov.b64 d, {a, b}", {64, 32, 32}, Combinations(Edges<uint32_t>(), 2),
            [](const Row& r) { return r[1] << 32 | r[0]; });
}

}  // namespace
}  // namespace forge::ptx
