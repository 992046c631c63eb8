// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/self_test/probes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "codegen/kernel/scalar.h"

namespace forge::vk {
namespace {

using codegen::Builder;
using codegen::BuiltinKind;
using codegen::Code;
using codegen::Val;

// Every pair of these stands in some invocation.
ProbeWords Specials(bool second) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kValues[8] = {0.0f, -0.0f, 1.0f, -1.0f, kInf, -kInf, kNan, 3.0f};
  ProbeWords w;
  for (uint32_t i = 0; i < kProbeLanes; ++i)
    w[i] = std::bit_cast<uint32_t>(kValues[second ? i % 8 : i / 8]);
  return w;
}

// Every pair of these, whose quotients are exact and normal numbers.
ProbeWords LargeNumbers(bool second) {
  constexpr float kValues[8] = {0x1p127f, -0x1p127f, 0x1p126f, -0x1p126f,
                                0x1p125f, 0x1p64f,   -0x1p8f,  0x1p3f};
  ProbeWords w;
  for (uint32_t i = 0; i < kProbeLanes; ++i)
    w[i] = std::bit_cast<uint32_t>(kValues[second ? i % 8 : i / 8]);
  return w;
}

float F(uint32_t bits) { return std::bit_cast<float>(bits); }
// Any NaN is as good as another.
uint32_t Bits(float v) { return std::isnan(v) ? 0x7fc00000u : std::bit_cast<uint32_t>(v); }

Val AsFloat(Val v) { return bitcast(v, DType::kF32); }
Val AsWord(Val v) { return select(v == v, bitcast(v, DType::kU32), 0x7fc00000); }

uint32_t SumOf(const ProbeRun& r, const std::vector<uint32_t>& mates, uint32_t) {
  uint32_t sum = 0;
  for (uint32_t m : mates) sum += r.a[m];
  return sum;
}
uint32_t ScanOf(const ProbeRun& r, const std::vector<uint32_t>& mates, uint32_t i) {
  uint32_t sum = 0;
  for (uint32_t m : mates)
    if (r.lane[m] <= r.lane[i]) sum += r.a[m];
  return sum;
}
// The word as a number on both sides of 0.
int Centred(uint32_t x) { return static_cast<int>(x) - 500; }

// Numbers that are whole, so that sums do not depend on their order.
Val ReduceFloats(Builder& b, Val x, Val) {
  using codegen::ReduceKind;
  const Val v = b.Convert(x, DType::kF32) - 500;
  const auto word = [&](ReduceKind k) { return bitcast(b.SubgroupReduce(k, v), DType::kU32); };
  return word(ReduceKind::kSum) + word(ReduceKind::kMax) * 3 + word(ReduceKind::kMin) * 5;
}
uint32_t ReducedFloatsOf(const ProbeRun& r, const std::vector<uint32_t>& mates, uint32_t) {
  std::vector<float> numbers;
  for (uint32_t m : mates) numbers.push_back(static_cast<float>(Centred(r.a[m])));
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  return Bits(std::accumulate(numbers.begin(), numbers.end(), 0.0f)) + Bits(*most) * 3 +
         Bits(*least) * 5;
}

Val ReduceIntegers(Builder& b, Val x, Val) {
  using codegen::ReduceKind;
  const Val bits = x - 500, number = bitcast(bits, DType::kI32);
  const auto word = [&](ReduceKind k, Val v) {
    return bitcast(b.SubgroupReduce(k, v), DType::kU32);
  };
  return word(ReduceKind::kMax, number) + word(ReduceKind::kMin, number) * 3 +
         b.SubgroupReduce(ReduceKind::kMax, bits) * 5 +
         b.SubgroupReduce(ReduceKind::kMin, bits) * 7;
}
uint32_t ReducedIntegersOf(const ProbeRun& r, const std::vector<uint32_t>& mates, uint32_t) {
  std::vector<int32_t> numbers;
  for (uint32_t m : mates) numbers.push_back(Centred(r.a[m]));
  const std::vector<uint32_t> bits(numbers.begin(), numbers.end());
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  const auto [lowest, highest] = std::minmax_element(bits.begin(), bits.end());
  return static_cast<uint32_t>(*most) + static_cast<uint32_t>(*least) * 3 + *highest * 5 +
         *lowest * 7;
}

// Each invocation leaves the loop at a trip of its own.
Val ReduceBehindLoop(Builder& b, Val x, Val y) {
  const Val trips = bitcast(y & 15, DType::kI32);
  const codegen::Vals sum = b.For({b.Int(0), trips, b.Int(1), Builder::Range::kNot}, {x},
                                  [&](Val i, const codegen::Vals& v) {
                                    return codegen::Vals{v[0] * 3 + bitcast(i, DType::kU32)};
                                  });
  return b.SubgroupReduce(codegen::ReduceKind::kSum, sum[0]);
}
uint32_t ReducedBehindLoopOf(const ProbeRun& r, const std::vector<uint32_t>& mates, uint32_t) {
  uint32_t all = 0;
  for (uint32_t m : mates) {
    uint32_t sum = r.a[m];
    for (uint32_t i = 0; i < (r.b[m] & 15); ++i) sum = sum * 3 + i;
    all += sum;
  }
  return all;
}

// What the neighbour holds; anything where there is none.
uint32_t NeighbourOf(const ProbeRun& r, const std::vector<uint32_t>& mates, uint32_t i) {
  for (uint32_t m : mates)
    if (r.lane[m] == (r.lane[i] ^ 1)) return r.a[m];
  return r.out[i];
}
uint32_t BallotOf(const ProbeRun& r, const std::vector<uint32_t>& mates, uint32_t) {
  uint32_t bits = 0;
  for (uint32_t m : mates)
    if (r.lane[m] < 32 && r.a[m] > r.b[m]) bits |= 1u << r.lane[m];
  return bits;
}

// Reads the word in parts of `to` and writes them back, each by itself.
Val CopyInParts(Builder& b, DType to) {
  const uint16_t in = b.AddView({.name = "parts", .elem = {to}, .operand = 0});
  const uint16_t out =
      b.AddView({.name = "copies", .elem = {to}, .operand = 1, .reads = false, .writes = true});
  const int count = 32 / BitWidth(to);
  for (int part = 0; part < count; ++part) {
    const auto at = [&](uint32_t word) {
      return (b.Builtin(BuiltinKind::kLocalX) + word) * count + part;
    };
    b.Store(out, at(2 * kProbeLanes), b.Load(in, at(0)));
  }
  return {};
}
uint32_t SameWord(uint32_t x, uint32_t) { return x; }

// x + 0.5 - y in a format that holds it.
Val Difference(Builder& b, Val x, Val y, DType format) {
  const Val difference = b.Convert(x, format) + 0.5 - b.Convert(y, format);
  return bitcast(b.Convert(difference, DType::kF32), DType::kU32);
}
uint32_t DifferenceOf(uint32_t x, uint32_t y) {
  return Bits(static_cast<float>(x) + 0.5f - static_cast<float>(y));
}

// The product of the low 7 bits of both, as it wraps.
Val NarrowProduct(Builder& b, Val x, Val y, DType narrow) {
  const auto low = [&](Val v) { return b.Convert(v & 127, narrow); };
  return b.Convert(low(x) * low(y), DType::kU32);
}
uint32_t NarrowProductOf(uint32_t x, uint32_t y) { return (x & 127) * (y & 127); }

// Quotients and remainders of vectors by a literal, which compilers multiply with its reciprocal.
constexpr int kPeriod = 98;
Val PartsOfPeriods(Builder& b, Val x, Val y) {
  const codegen::Type four = codegen::Type{DType::kI64}.Lanes(4);
  const Val wide = b.Convert(b.Pack(codegen::kU32.Lanes(4), {x, y, x * 3, y * 7}), DType::kI64);
  const Val v = wide * wide - 12345;
  const Val quotient = b.Emit(Code::kDiv, four, {v, b.Literal(four, kPeriod)});
  const Val mixed = b.Convert(quotient * 7 + (v - quotient * kPeriod), DType::kU32);
  return (b.Extract(mixed, 0) ^ b.Extract(mixed, 1)) + (b.Extract(mixed, 2) ^ b.Extract(mixed, 3));
}
uint32_t PartsOfPeriodsOf(uint32_t x, uint32_t y) {
  const auto mixed = [](uint32_t n) {
    const int64_t v = int64_t{n} * n - 12345;
    return static_cast<uint32_t>(v / kPeriod * 7 + v % kPeriod);
  };
  return (mixed(x) ^ mixed(y)) + (mixed(x * 3) ^ mixed(y * 7));
}

// The products of bytes with and without signs.
Val DotProducts(Builder& b, Val x, Val y) {
  using codegen::DotKind;
  const Val xx = x * x, yx = y * x;
  const Val plain = b.Dot4(DotKind::kUnsigned, xx, yx, b.Bits(codegen::kU32, 7));
  const auto word = [&](DotKind kind) {
    return bitcast(b.Dot4(kind, xx, yx, b.Int(7)), DType::kU32);
  };
  return word(DotKind::kSigned) + plain * 3 + word(DotKind::kMixed) * 5;
}
uint32_t DotProductsOf(uint32_t x, uint32_t y) {
  uint32_t sum = 7 * (1 + 3 + 5);
  for (int s = 0; s < 32; s += 8) {
    const int a = x * x >> s & 255, b = y * x >> s & 255;
    const int signed_a = static_cast<int8_t>(a), signed_b = static_cast<int8_t>(b);
    sum += static_cast<uint32_t>(signed_a * signed_b + a * b * 3 + signed_a * b * 5);
  }
  return sum;
}

constexpr uint32_t kFurther = 17;  // invocations, in another subgroup than most

// Words change hands through shared memory and through the operand, each time over a barrier, and
// what says which is seen is Vulkan's memory model.
Val Exchange(Builder& b, Val x, Val y) {
  codegen::Kernel& k = b.kernel();
  k.vulkan_memory = true;
  const uint16_t operand = 1;  // the view of the results, which are read here too
  k.views[operand].reads = true;
  const uint16_t shared = b.AddView({.name = "shared",
                                     .space = codegen::Space::kShared,
                                     .elem = codegen::kU32,
                                     .extent = kProbeLanes,
                                     .reads = true,
                                     .writes = true});
  const Val i = b.Builtin(BuiltinKind::kLocalX), at = i + 2 * kProbeLanes;
  b.Store(shared, i, x);
  b.Barrier();
  const Val opposite = b.Load(shared, b.Int(kProbeLanes - 1) - i);
  b.Store(operand, at, opposite * 3 + y);
  b.Barrier();
  const Val further = b.Load(operand, ((i + kFurther) & (kProbeLanes - 1)) + 2 * kProbeLanes);
  b.Barrier();
  return further ^ opposite;
}
uint32_t ExchangedOf(const ProbeRun& r, const std::vector<uint32_t>&, uint32_t i) {
  const auto opposite = [&](uint32_t at) { return r.a[kProbeLanes - 1 - at]; };
  const uint32_t further = (i + kFurther) % kProbeLanes;
  return (opposite(further) * 3 + r.b[further]) ^ opposite(i);
}

// The sum of both, made in shared memory.
Val SumInPlace(Builder& b, Val x, Val y) {
  const uint16_t sums = b.AddView({.name = "sums",
                                   .space = codegen::Space::kShared,
                                   .elem = codegen::kF32,
                                   .extent = kProbeLanes,
                                   .writes = true});
  const Val i = b.Builtin(BuiltinKind::kLocalX);
  b.Store(sums, i, b.Convert(x, DType::kF32));
  b.Barrier();
  b.Atomic(codegen::AtomicKind::kAdd, sums, i, b.Convert(y, DType::kF32));
  b.Barrier();
  return bitcast(b.Load(sums, i), DType::kU32);
}

constexpr Probe kPlain = {"", [](Builder&, Val x, Val y) { return x + y; },
                          [](uint32_t x, uint32_t y) { return x + y; }};

// Those of one feature stand together.
constexpr Probe kProbes[] = {
    {"fp16", [](Builder& b, Val x, Val y) { return Difference(b, x, y, DType::kF16); },
     DifferenceOf},
    {"fp64", [](Builder& b, Val x, Val y) { return Difference(b, x, y, DType::kF64); },
     DifferenceOf},
    {"int8", [](Builder& b, Val x, Val y) { return NarrowProduct(b, x, y, DType::kU8); },
     [](uint32_t x, uint32_t y) { return NarrowProductOf(x, y) & 0xff; }},
    {"int16", [](Builder& b, Val x, Val y) { return NarrowProduct(b, x, y, DType::kU16); },
     [](uint32_t x, uint32_t y) { return NarrowProductOf(x, y) & 0xffff; }},
    {"int64",
     [](Builder& b, Val x, Val y) {
       const codegen::Type wide{DType::kU64};
       const Val high = b.Emit(Code::kShl, wide, {b.Convert(x, DType::kU64), b.Bits(wide, 33)});
       const Val difference = high - b.Convert(y, DType::kU64);
       return b.Convert(b.Emit(Code::kShr, wide, {difference, b.Bits(wide, 20)}), DType::kU32);
     },
     [](uint32_t x, uint32_t y) { return static_cast<uint32_t>(((uint64_t{x} << 33) - y) >> 20); }},
    {"int64", PartsOfPeriods, PartsOfPeriodsOf},
    {"storage8", [](Builder& b, Val, Val) { return CopyInParts(b, DType::kU8); }, SameWord},
    {"storage16", [](Builder& b, Val, Val) { return CopyInParts(b, DType::kU16); }, SameWord},
    {"subgroup_arithmetic",
     [](Builder& b, Val x, Val) { return b.SubgroupReduce(codegen::ReduceKind::kSum, x); }, nullptr,
     SumOf},
    {"subgroup_arithmetic",
     [](Builder& b, Val x, Val) { return b.SubgroupScan(codegen::ReduceKind::kSum, x); }, nullptr,
     ScanOf},
    {"subgroup_arithmetic", ReduceFloats, nullptr, ReducedFloatsOf},
    {"subgroup_arithmetic", ReduceIntegers, nullptr, ReducedIntegersOf},
    {"subgroup_reconvergence", ReduceBehindLoop, nullptr, ReducedBehindLoopOf},
    {"subgroup_shuffle", [](Builder& b, Val x, Val) { return b.ShuffleXor(x, 1); }, nullptr,
     NeighbourOf},
    {"subgroup_shuffle",
     [](Builder& b, Val x, Val) { return b.Shuffle(x, b.Builtin(BuiltinKind::kLane) ^ 1); },
     nullptr, NeighbourOf},
    {"subgroup_ballot", [](Builder& b, Val x, Val y) { return b.Extract(b.Ballot(y < x), 0); },
     nullptr, BallotOf},
    {"int_dot", DotProducts, DotProductsOf},
    {"memory_model", Exchange, nullptr, ExchangedOf},
    {"f32_atomic_add", SumInPlace,
     [](uint32_t x, uint32_t y) { return Bits(static_cast<float>(x + y)); }},
    {"signed_zero_inf_nan", [](Builder&, Val x, Val y) { return AsWord(AsFloat(x) * AsFloat(y)); },
     [](uint32_t x, uint32_t y) { return Bits(F(x) * F(y)); }, nullptr, Specials},
    {"signed_zero_inf_nan", [](Builder&, Val x, Val y) { return AsWord(AsFloat(x) - AsFloat(y)); },
     [](uint32_t x, uint32_t y) { return Bits(F(x) - F(y)); }, nullptr, Specials},
    {"signed_zero_inf_nan", [](Builder&, Val x, Val) { return AsWord(AsFloat(x) * 0.0); },
     [](uint32_t x, uint32_t) { return Bits(F(x) * 0.0f); }, nullptr, Specials},
    {"signed_zero_inf_nan", [](Builder&, Val x, Val) { return AsWord(AsFloat(x) / 0.0); },
     [](uint32_t x, uint32_t) { return Bits(F(x) / 0.0f); }, nullptr, Specials},
    {"large_divisors", [](Builder&, Val x, Val y) { return AsWord(AsFloat(x) / AsFloat(y)); },
     [](uint32_t x, uint32_t y) { return Bits(F(x) / F(y)); }, nullptr, LargeNumbers},
};

// ---- matrices -----------------------------------------------------------------------------------

// Elements lie in shared memory as schedules keep them: in vectors, rows of A and columns of B
// along k.
constexpr uint32_t kVector = 4;

// The lowest of eight numbers that elements are: on both sides of 0, or of what would be below 0
// were it signed.
int LowestElement(DType t) { return t == DType::kU8 ? 124 : -3; }

// Element `at` of a matrix that invocations with these words fill in.
int MatrixElement(DType t, const ProbeWords& words, uint32_t at) {
  const uint32_t vector = at / kVector, part = vector / kProbeLanes * kVector + at % kVector;
  return static_cast<int>(words[vector % kProbeLanes] >> (part % 8 * 3) & 7) + LowestElement(t);
}

// Fills `view`, whose elements are vectors, from a word of each invocation.
void FillMatrix(Builder& b, uint16_t view, Val word) {
  const codegen::View& v = b.kernel().views[view];
  const codegen::Type type = v.elem;
  const uint32_t vectors = v.extent;
  const Val local = b.Builtin(BuiltinKind::kLocalX);
  for (uint32_t first = 0; first < vectors; first += kProbeLanes) {
    codegen::Vals elements;
    for (uint32_t n = 0; n < kVector; ++n) {
      const uint32_t shift = (first / kProbeLanes * kVector + n) % 8 * 3;
      const Val shifted = b.Emit(Code::kShr, codegen::kU32, {word, b.Bits(codegen::kU32, shift)});
      const Val number = b.Convert(shifted & 7, DType::kF32) + LowestElement(type.elem);
      elements.push_back(b.Convert(number, type.elem));
    }
    const Val at = local + first;
    b.If(at < vectors, [&] { b.Store(view, at, b.Pack(type, elements)); });
  }
}

// Every element of `results`, weighed by where it stands.
Val SumResults(Builder& b, uint16_t results) {
  const codegen::View& v = b.kernel().views[results];
  const bool is_float = v.elem == codegen::kF32;
  const codegen::Type type = is_float ? codegen::kF32 : codegen::kU32;
  const uint32_t extent = v.extent;
  Val sum = b.Literal(type, 0);
  for (uint32_t first = 0; first < extent; first += kProbeLanes) {
    Val result = b.Load(results, b.Builtin(BuiltinKind::kLocalX) + first);
    if (!(result.type() == type)) result = bitcast(result, type.elem);
    sum = sum + result * (first / kProbeLanes + 1);
  }
  return is_float ? bitcast(sum, DType::kU32) : sum;
}

// The product of the matrices that x and y fill.
Val EmitMatrices(Builder& b, const Probe& p, Val x, Val y) {
  using codegen::MatrixUse;
  using codegen::Type;
  const codegen::MatrixShape& s = p.matrix;
  const auto shared = [&](const char* name, Type t, uint32_t elements) {
    return b.AddView({.name = name,
                      .space = codegen::Space::kShared,
                      .elem = t,
                      .extent = elements / t.lanes,
                      .reads = true,
                      .writes = true});
  };
  const uint16_t left = shared("left", Type{s.a}.Lanes(kVector), uint32_t{s.m} * s.k);
  const uint16_t right = shared("right", Type{s.b}.Lanes(kVector), uint32_t{s.k} * s.n);
  const uint16_t out = shared("product", {s.c}, uint32_t{s.m} * s.n);
  FillMatrix(b, left, x);
  FillMatrix(b, right, y);
  b.Barrier();
  b.If(b.Builtin(BuiltinKind::kSubgroup) == 0, [&] {
    const Val zero = b.Literal(Type::Matrix(s.c, MatrixUse::kAccumulator, s.m, s.n), 0);
    const Val pitch = b.Int(s.k / kVector);
    const Val a =
        b.MatrixLoad(left, Type::Matrix(s.a, MatrixUse::kA, s.m, s.k), b.Int(0), pitch, false);
    const Val c =
        b.MatrixLoad(right, Type::Matrix(s.b, MatrixUse::kB, s.k, s.n), b.Int(0), pitch, true);
    const Val product = b.MatrixMulAdd(a, c, zero);
    if (!p.by_elements) return b.MatrixStore(out, b.Int(0), b.Int(s.n), product);
    b.ForElements(product, [&](Val row, Val column, Val element) {
      b.Store(out, row * s.n + column, element);
    });
  });
  b.Barrier();
  return SumResults(b, out);
}

uint32_t ExpectedOfMatrices(const codegen::MatrixShape& s, const ProbeRun& r, uint32_t i) {
  int64_t sum = 0;
  for (uint32_t at = i; at < uint32_t{s.m} * s.n; at += kProbeLanes)
    for (uint32_t k = 0; k < s.k; ++k)
      sum += int64_t{MatrixElement(s.a, r.a, at / s.n * s.k + k)} *
             MatrixElement(s.b, r.b, at % s.n * s.k + k) * (at / kProbeLanes + 1);
  return s.c == DType::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(sum))
                            : static_cast<uint32_t>(sum);
}

// Differs in every bit that elements are made of.
ProbeWords Mixed(bool second) {
  ProbeWords w;
  for (uint32_t i = 0; i < kProbeLanes; ++i) w[i] = (i + (second ? 77 : 1)) * 2654435761u;
  return w;
}

}  // namespace

ProbeWords SmallNumbers(bool second) {
  ProbeWords w;
  for (uint32_t i = 0; i < kProbeLanes; ++i) w[i] = (i * 2654435761u >> 7) % (second ? 251 : 1009);
  return w;
}

Probe MatrixProbe(const codegen::MatrixShape& shape, bool by_elements) {
  return {
      .feature = "cooperative_matrix", .input = Mixed, .matrix = shape, .by_elements = by_elements};
}

const Probe& PlainProbe() { return kPlain; }
std::span<const Probe> Probes() { return kProbes; }

codegen::Kernel KernelOf(const Probe& p, const codegen::Caps& caps) {
  const bool matrices = p.matrix.m > 0;
  codegen::Kernel k;
  k.name = fmt::format("probe_{}", p.feature);
  k.workgroup = {kProbeLanes, 1, 1};
  if (matrices) k.subgroup = static_cast<uint32_t>(caps.matrix_subgroup_size());
  Builder b(k);
  const uint16_t in = b.AddView({.name = "in", .elem = codegen::kU32, .operand = 0});
  const uint16_t out = b.AddView(
      {.name = "out", .elem = codegen::kU32, .operand = 1, .reads = false, .writes = true});
  const Val i = b.Builtin(BuiltinKind::kLocalX);
  const auto plus = [&](uint32_t n) { return i + n * kProbeLanes; };
  const Val x = b.Load(in, i), y = b.Load(in, plus(1));
  const Val result = matrices ? EmitMatrices(b, p, x, y) : p.emit(b, x, y);
  const auto word = [&](BuiltinKind which) {
    return matrices || p.expect_among ? bitcast(b.Builtin(which), DType::kU32)
                                      : b.Bits(codegen::kU32, 0);
  };
  b.Store(out, i, word(BuiltinKind::kLane));
  b.Store(out, plus(1), word(BuiltinKind::kSubgroup));
  if (result) b.Store(out, plus(2), result);
  b.Finish();
  return k;
}

std::string Judge(const Probe& p, const ProbeRun& r) {
  std::map<uint32_t, std::vector<uint32_t>> subgroups;
  for (uint32_t i = 0; i < kProbeLanes; ++i) subgroups[r.subgroup[i]].push_back(i);
  for (uint32_t i = 0; i < kProbeLanes; ++i) {
    const uint32_t expected = p.matrix.m > 0   ? ExpectedOfMatrices(p.matrix, r, i)
                              : p.expect_among ? p.expect_among(r, subgroups[r.subgroup[i]], i)
                                               : p.expect(r.a[i], r.b[i]);
    if (r.out[i] != expected)
      return fmt::format("invocation {} computed {:#x} instead of {:#x}", i, r.out[i], expected);
  }
  return {};
}

}  // namespace forge::vk
