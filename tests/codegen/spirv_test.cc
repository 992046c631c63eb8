// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <map>
#include <spirv-tools/libspirv.hpp>

#include "tests/codegen/kernels.h"
#include "tests/support/spirv_check.h"

namespace forge::codegen {
namespace {

// The disassembly of what the validator accepts; the validator's message otherwise.
std::string Checked(const Kernel& k, const Caps& caps) {
  if (const absl::Status s = Verify(k, caps); !s.ok()) return s.ToString();
  const std::vector<uint32_t> words = PrintSpirv(k, caps);
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_1);
  std::string text;
  tools.Disassemble(words, &text,
                    SPV_BINARY_TO_TEXT_OPTION_NO_HEADER | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES);
  const std::string errors = SpirvErrors(words);
  return errors.empty() ? text : errors + text + ToText(k);
}

struct Example {
  std::string name;
  std::function<Kernel()> make;
  std::vector<std::string> has, lacks;  // of the disassembly
};
void PrintTo(const Example& e, std::ostream* out) { *out << e.name; }

class SpirvTest : public ::testing::TestWithParam<Example> {};

TEST_P(SpirvTest, Validates) {
  const Example& e = GetParam();
  const std::string text = Checked(e.make(), RichCaps());
  ASSERT_NE(text.find("OpEntryPoint"), std::string::npos) << text;
  ASSERT_EQ(text.find("word "), std::string::npos) << text;
  for (const std::string& s : e.has)
    EXPECT_NE(text.find(s), std::string::npos) << s << "\n" << text;
  for (const std::string& s : e.lacks)
    EXPECT_EQ(text.find(s), std::string::npos) << s << "\n" << text;
}

// Each turn of a loop loads what the one before has stored.
Kernel SumInMemory() {
  return MakeKernel("sum_in_memory", [](Builder& b, Val) {
    const uint16_t x = b.AddView(Reads("x", kF32, 0));
    View both = Writes("y", kF32, 1);
    both.reads = true;
    const uint16_t y = b.AddView(both);
    b.For({b.Int(0), b.Int(6), b.Int(1)}, {}, [&](Val i, const Vals&) {
      b.Store(y, b.Int(0), b.Load(y, b.Int(0)) + b.Load(x, i));
      return Vals{};
    });
  });
}

// What devices compute as they like.
Kernel Fast() {
  return MapKernel("fast", kF32, kF32, [](Val x) {
    x.b->set_precise(false);
    Val y = max(x, 3) + min(x, -1) * x;
    for (Code code : {Code::kExp2, Code::kLog2, Code::kSin, Code::kCos})
      y = x.b->Emit(code, kF32, {y});
    return y;
  });
}

Vals GrowPastTheOther(Builder& b, const Vals& pair) {
  return b.While(
      pair, [](Vals w) { return w[0] < w[1]; }, [](Vals w) { return Vals{w[1] * 2, w[0]}; });
}

Kernel Nested() {
  return MapKernel("nested", kF32, kF32, [](Val x) {
    Builder& b = *x.b;
    const Val n = b.Scalar(ir::Dim(std::make_shared<ir::Symbol>(ir::Symbol{"n"})));
    return b.For({b.Int(0), n, b.Int(2)}, {x, b.Literal(kF32, 1)}, [&](Val i, Vals v) {
      const Val swapped = v[0] + convert(i, DType::kF32);
      const Vals chosen = b.If(
          i < 5, [&] { return GrowPastTheOther(b, {v[1], swapped}); },
          [&] { return Vals{swapped, v[1]}; });
      b.If(i < 2, [&] {});
      return Vals{chosen[1], chosen[0]};
    })[0];
  });
}

Kernel Looping(Builder::Range::Unroll unroll) {
  return MapKernel("looping", kF32, kF32, [&](Val x) {
    Builder& b = *x.b;
    return b.For({b.Int(0), b.Int(30), b.Int(1), unroll}, {x},
                 [](Val, Vals v) { return Vals{v[0] * v[0]}; })[0];
  });
}

Kernel Subgroups() {
  return MakeKernel("subgroups", [](Builder& b, Val i) {
    const uint16_t in = b.AddView(Reads("x", kF32, 0)), out = b.AddView(Writes("y", kF32, 1));
    const Val x = b.Load(in, i), lane = b.Builtin(BuiltinKind::kLane);
    Val y = b.Shuffle(x, lane ^ b.Int(1)) + b.ShuffleXor(x, 2);
    y = y + b.SubgroupReduce(ReduceKind::kMax, x) + b.SubgroupScan(ReduceKind::kSum, x);
    const Val votes = b.Ballot(x < 1);
    const Val subgroup = convert(b.Builtin(BuiltinKind::kSubgroup), DType::kU32);
    b.Store(out, i, y + convert(b.Extract(votes, 0) + subgroup, DType::kF32));
  });
}

Kernel Aliases() {
  return MakeKernel("aliases", [](Builder& b, Val i) {
    const uint16_t one = b.AddView(Reads("x1", kF32, 0));
    const uint16_t four = b.AddView(Reads("x4", kF32.Lanes(4), 0));
    const uint16_t again = b.AddView(Reads("x1_again", kF32, 0));
    const uint16_t out = b.AddView(Writes("y", kF32.Lanes(4), 1));
    const Val v = b.Load(four, i) * b.Load(one, i) + b.Load(again, i + 1);
    b.Store(out, i, b.Insert(v, b.Extract(v, 0), 3));
  });
}

Kernel Atomics() {
  return MakeKernel("atomics", [](Builder& b, Val i) {
    View counts = Writes("counts", kU32, 0);
    counts.reads = true;
    const uint16_t out = b.AddView(counts), tile = b.AddView(Shared("tile", kI32, 16));
    for (auto kind : {AtomicKind::kAdd, AtomicKind::kMin, AtomicKind::kMax, AtomicKind::kAnd,
                      AtomicKind::kOr, AtomicKind::kExchange}) {
      const Val before = b.Atomic(kind, tile, i & 15, i);
      b.Atomic(kind, out, i, convert(before, DType::kU32));
    }
  });
}

Kernel Privates() {
  return MakeKernel("privates", [](Builder& b, Val i) {
    View acc = Shared("acc", kF32.Lanes(4), 8);
    acc.space = Space::kPrivate;
    View flags = Shared("flags", kBool, 4);
    flags.space = Space::kPrivate;
    const uint16_t at = b.AddView(acc), flag = b.AddView(flags);
    const uint16_t out = b.AddView(Writes("y", kF32.Lanes(4), 0));
    b.For({b.Int(0), b.Int(8), b.Int(1)}, {}, [&](Val n, const Vals&) {
      b.Store(at, n, splat(convert(n * i, DType::kF32), 4));
      b.Store(flag, n & 3, n < i);
      return Vals{};
    });
    b.If(b.Load(flag, i & 3), [&] { b.Store(out, i, b.Load(at, i & 7)); });
  });
}

Kernel Dots() {
  return MapKernel("dots", kU32, kI32, [](Val x) {
    Val sum = x.b->Int(0);
    for (DotKind kind : {DotKind::kSigned, DotKind::kUnsigned, DotKind::kMixed})
      sum = x.b->Dot4(kind, x, x + 1, sum);
    return sum + convert(x.b->Emit(Code::kMulHigh, kU32, {x, x}), DType::kI32);
  });
}

INSTANTIATE_TEST_SUITE_P(
    , SpirvTest,
    ::testing::ValuesIn(std::vector<Example>{
        {"f32",
         [] { return Arithmetic(kF32); },
         {"NoContraction", "SignedZeroInfNanPreserve"},
         {"Int64", "Float16", "Float64", "8Bit", "16Bit", "GroupNonUniform"}},
        {"f32x4", [] { return Arithmetic(kF32.Lanes(4)); }, {"OpTypeVector %float 4"}, {}},
        {"f16", [] { return Arithmetic(kF16); }, {"Capability Float16", "Buffer16BitAccess"}, {}},
        {"f64", [] { return Arithmetic(kF64); }, {"Capability Float64"}, {}},
        {"i32", [] { return Arithmetic(kI32); }, {"OpSDiv", "OpSLessThan"}, {"OpSRem"}},
        {"u32", [] { return Arithmetic(kU32); }, {"OpUDiv", "OpULessThan", "OpUMod"}, {}},
        {"i64", [] { return Arithmetic(kI64); }, {"Capability Int64"}, {}},
        {"fast", Fast, {"Exp2", "Log2", "Sin", "Cos", "FMax", "FMin"}, {"NoContraction"}},
        {"rolled", [] { return Looping(Builder::Range::kNot); }, {"DontUnroll"}, {}},
        {"left_to_the_driver",
         [] { return Looping(Builder::Range::kAsDriverLikes); },
         {"OpLoopMerge"},
         {"DontUnroll"}},
        {"nested", Nested, {"OpPhi", "OpLoopMerge", "PushConstant"}, {}},
        {"tree_sum", TreeSum, {"OpControlBarrier", "Workgroup"}, {}},
        {"subgroups", Subgroups, {"OpGroupNonUniformSMax", "OpGroupNonUniformFAdd"}, {}},
        {"aliases",
         Aliases,
         {"%x1 Aliased", "%x4 Aliased", "%y Restrict", "%x1 NonWritable"},
         {"x1_again"}},
        {"sum_in_memory", SumInMemory, {"%y Coherent"}, {"%x Coherent"}},
        {"atomics", Atomics, {"OpAtomicSMin", "OpAtomicUMin", "OpAtomicExchange"}, {}},
        {"privates", Privates, {"Function"}, {}},
        {"dots", Dots, {"OpSDot", "OpUDot", "OpSUDot", "OpUMulExtended"}, {}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(SpirvConvertTest, EveryPairValidates) {
  const Type types[] = {kI8, kU8, kU16, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kU8.Lanes(4)};
  for (const Type& from : types)
    for (const Type& to : types)
      if (from.lanes == to.lanes) {
        const std::string text = Checked(Conversion(from, to), RichCaps());
        EXPECT_EQ(text.find("word "), std::string::npos) << text;
      }
}

TEST(SpirvConvertTest, NarrowTypesThatAreOnlyStoredNeedNoArithmetic) {
  Caps poor = RichCaps();
  poor.f16 = poor.i8 = poor.i16 = false;
  for (const Type& t : {kF16, kU8, kU16}) {
    const std::string text =
        Checked(MapKernel("narrow", t, t,
                          [&](Val x) {
                            const Val wide = convert(x, DType::kF32);
                            return convert(x.b->If(
                                               wide < 3, [&] { return Vals{wide * 2}; },
                                               [&] { return Vals{x.b->Literal(kF32, 7)}; })[0],
                                           t.elem);
                          }),
                poor);
    EXPECT_EQ(text.find("word "), std::string::npos) << text;
    EXPECT_EQ(text.find("Capability Float16"), std::string::npos) << text;
    EXPECT_EQ(text.find("Capability Int"), std::string::npos) << text;
  }
  const std::string literal =
      Checked(MapKernel("literal", kF16, kF16, [](Val x) { return x.b->Literal(kF16, 2); }), poor);
  EXPECT_EQ(literal.find("word "), std::string::npos) << literal;
}

TEST(SpirvLowerTest, WithoutFloatControlsNaNIsFoundInBits) {
  Caps poor;
  const std::string text =
      Checked(MapKernel("relu", kF32, kF32, [](Val x) { return max(x, 0); }), poor);
  EXPECT_NE(text.find("FMax"), std::string::npos) << text;
  EXPECT_NE(text.find("OpBitcast"), std::string::npos) << text;
  EXPECT_EQ(text.find("OpExtension"), std::string::npos) << text;
}

TEST(SpirvLowerTest, ReluIsOneComparisonWithFloatControls) {
  const std::string text =
      Checked(MapKernel("relu", kF32, kF32, [](Val x) { return max(x, 0); }), RichCaps());
  EXPECT_NE(text.find("OpFOrdLessThanEqual"), std::string::npos) << text;
  EXPECT_EQ(text.find("FMax"), std::string::npos) << text;
}

TEST(SpirvLowerTest, DotsAreSpelledOutWhereThereAreNone) {
  const std::string text = Checked(Dots(), Caps{});
  EXPECT_EQ(text.find("word "), std::string::npos) << text;
  EXPECT_EQ(text.find("SDot"), std::string::npos) << text;
}

TEST(SpirvLowerTest, WideIntegersAreHalvedWhereThereAreNone) {
  Caps poor = RichCaps();
  poor.i64 = false;
  for (const Type& t : {kI64, kU64, kI64.Lanes(2), kU64.Lanes(4)}) {
    const std::string text = Checked(Arithmetic(t), poor);
    EXPECT_EQ(text.find("word "), std::string::npos) << text;
    EXPECT_EQ(text.find("Capability Int64"), std::string::npos) << text;
    for (const Type& other : {kI8, kU16, kF16, kI32, kU32, kF32, kF64, kU64}) {
      for (const auto& [from, to] : {std::pair(t, other), std::pair(other, t)}) {
        if (from.lanes != to.lanes) continue;
        const std::string convert = Checked(Conversion(from, to), poor);
        EXPECT_EQ(convert.find("word "), std::string::npos) << convert;
      }
    }
  }
}

TEST(SpirvLowerTest, WhatNobodyReadsIsLeftOut) {
  const std::string text = Checked(MapKernel("dead", kF32, kF32,
                                             [](Val x) {
                                               (void)sqrt(x * 3);
                                               x.b->If(x < 1, [&] { (void)(x * 5); });
                                               return x;
                                             }),
                                   RichCaps());
  EXPECT_EQ(text.find("Sqrt"), std::string::npos) << text;
  EXPECT_EQ(text.find("OpFMul"), std::string::npos) << text;
}

// A barrier shows other invocations only what Vulkan's memory model is told to.
TEST(SpirvLowerTest, SharedMemoryIsMadeAvailableAndVisible) {
  Caps caps = RichCaps();
  caps.memory_model = true;
  Kernel k = TreeSum();
  k.vulkan_memory = true;
  const std::string text = Checked(k, caps);
  EXPECT_NE(text.find("MakePointerAvailable"), std::string::npos) << text;
  EXPECT_NE(text.find("MakePointerVisible"), std::string::npos) << text;
}

TEST(SpirvTextTest, EqualKernelsPrintEqually) {
  EXPECT_EQ(PrintSpirv(TreeSum(), RichCaps()), PrintSpirv(TreeSum(), RichCaps()));
}

// The operands of the product of such matrices that are said to be signed; 0 where none is.
uint32_t SignedOperands(DType a, DType b_type, DType sum) {
  const Kernel k = MakeKernel("product", [&](Builder& b, Val) {
    const uint16_t left = b.AddView(Shared("left", {a}, 64));
    const uint16_t right = b.AddView(Shared("right", {b_type}, 64));
    const uint16_t out = b.AddView(Shared("sums", {sum}, 64));
    const Val x =
        b.MatrixLoad(left, Type::Matrix(a, MatrixUse::kA, 8, 8), b.Int(0), b.Int(8), false);
    const Val y =
        b.MatrixLoad(right, Type::Matrix(b_type, MatrixUse::kB, 8, 8), b.Int(0), b.Int(8), false);
    const Val zero = b.Literal(Type::Matrix(sum, MatrixUse::kAccumulator, 8, 8), 0);
    b.MatrixStore(out, b.Int(0), b.Int(8), b.MatrixMulAdd(x, y, zero));
  });
  constexpr uint32_t kMulAdd = 4459;  // OpCooperativeMatrixMulAddKHR
  const std::vector<uint32_t> words = PrintSpirv(k, RichCaps());
  for (size_t at = 5; at < words.size(); at += words[at] >> 16)
    if ((words[at] & 0xffff) == kMulAdd) return words[at] >> 16 == 7 ? words[at + 6] : 0;
  ADD_FAILURE() << "no product";
  return 0;
}

TEST(SpirvMatrixTest, SaysWhichElementsAreSigned) {
  EXPECT_EQ(SignedOperands(DType::kF16, DType::kF16, DType::kF32), 0u);
  EXPECT_EQ(SignedOperands(DType::kU8, DType::kU8, DType::kU32), 0u);
  EXPECT_EQ(SignedOperands(DType::kI8, DType::kI8, DType::kI32), 1u | 2u | 4u | 8u);
  EXPECT_EQ(SignedOperands(DType::kU8, DType::kI8, DType::kI32), 2u | 4u | 8u);
  EXPECT_EQ(SignedOperands(DType::kI8, DType::kU8, DType::kI32), 1u | 4u | 8u);
}

// The body becomes a function; what it takes from outside follows the element.
// OpExecutionMode of SubgroupUniformControlFlowKHR.
bool DeclaresUniformControlFlow(const std::vector<uint32_t>& words) {
  for (size_t at = 5; at < words.size(); at += words[at] >> 16)
    if ((words[at] & 0xffff) == 16 && words[at + 2] == 4421) return true;
  return false;
}

TEST(SpirvModeTest, AsksForWholeSubgroupsBehindLoops) {
  Caps caps = RichCaps();
  EXPECT_FALSE(DeclaresUniformControlFlow(PrintSpirv(SumBehindLoop(), caps)));
  caps.subgroup_uniform_control_flow = true;
  const std::vector<uint32_t> words = PrintSpirv(SumBehindLoop(), caps);
  EXPECT_EQ(SpirvErrors(words), "");
  EXPECT_TRUE(DeclaresUniformControlFlow(words));
  EXPECT_FALSE(DeclaresUniformControlFlow(PrintSpirv(TreeSum(), caps)));
}

TEST(SpirvMatrixTest, CallsAFunctionForEachElement) {
  const Kernel k = MakeKernel("elements", [&](Builder& b, Val) {
    const uint16_t out = b.AddView(Writes("y", kF32, 0));
    const Val first = b.Builtin(BuiltinKind::kSubgroup) * 64;
    const Val ones = b.Literal(Type::Matrix(DType::kF32, MatrixUse::kAccumulator, 8, 8), 1);
    b.ForElements(ones, [&](Val row, Val column, Val v) {
      b.If(row < column, [&] { b.Store(out, first + row * 8 + column, v * 2); });
    });
  });
  const std::vector<uint32_t> words = PrintSpirv(k, RichCaps());
  EXPECT_EQ(SpirvErrors(words), "");
  std::map<uint32_t, int> count;
  uint32_t passed = 0, parameters = 0;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xffff;
    ++count[op];
    if (op == 5369) passed = (words[at] >> 16) - 5;  // OpCooperativeMatrixPerElementOpNV
    if (op == 55) ++parameters;                      // OpFunctionParameter
  }
  EXPECT_EQ(count[54], 2);  // OpFunction
  EXPECT_EQ(count[56], 2);  // OpFunctionEnd
  EXPECT_EQ(count[5369], 1);
  EXPECT_EQ(parameters, passed + 3);
  EXPECT_TRUE(DeclaresCapability(words, kMatrixElementsCapability));
  EXPECT_TRUE(DeclaresCapability(words, kCooperativeMatrixCapability));
}

}  // namespace
}  // namespace forge::codegen
