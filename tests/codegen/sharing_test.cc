// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower/sharing.h"

#include <set>

#include "ir/cases/bounds.h"
#include "ir/cases/case_inputs.h"
#include "ir/graph/interpreter.h"
#include "tests/codegen/kernels.h"
#include "tests/support/kernel_machine.h"
#include "tests/support/region_runner.h"

namespace forge::codegen {
namespace {

constexpr size_t kScalars = 29;

// y[i] = x[stride * i + 1] * factor + x[stride * i], for i below `count`.
Kernel Strided(int count, int stride, double factor) {
  return MakeKernel("strided", [&](Builder& b, Val i) {
    const uint16_t x = b.AddView(Reads("x", kF32, 0)), y = b.AddView(Writes("y", kF32, 1));
    b.If(i < count, [&] {
      const Val at = i * stride;
      b.Store(y, i, fma(b.Load(x, at + 1), b.Literal(kF32, factor), b.Load(x, at)));
    });
  });
}

std::vector<float> Results(const Kernel& k) {
  std::vector<uint8_t> x(4000 * sizeof(float)), y(200 * sizeof(float));
  for (int i = 0; i < 4000; ++i) {
    const auto v = static_cast<float>(i);
    std::memcpy(&x[i * sizeof(float)], &v, sizeof v);
  }
  std::vector<uint8_t>* operands[] = {&x, &y};
  EXPECT_TRUE(Verify(k, RichCaps()).ok()) << Verify(k, RichCaps());
  const absl::Status s = testing::RunKernel(k, operands);
  EXPECT_TRUE(s.ok()) << s;
  std::vector<float> out(200);
  std::memcpy(out.data(), y.data(), y.size());
  return out;
}

std::vector<Kernel> AfterSharing(KernelSharing& sharing, std::vector<Kernel> kernels) {
  std::vector<Kernel*> all;
  for (Kernel& k : kernels) all.push_back(&k);
  sharing.Share(all);
  return kernels;
}

TEST(Sharing, KernelsThatDifferInLiteralsBecomeOne) {
  const std::vector<Kernel> before = {Strided(100, 3, 0.7), Strided(150, 5, 1.3),
                                      Strided(200, 17, -2.1)};
  KernelSharing sharing(kScalars);
  const std::vector<Kernel> after = AfterSharing(sharing, before);
  EXPECT_NE(Hash(before[0]), Hash(before[1]));
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(Hash(after[i]), Hash(after[0]));
    EXPECT_EQ(Results(after[i]), Results(before[i]));
  }
}

TEST(Sharing, AKernelLikeNoOtherKeepsItsLiterals) {
  KernelSharing sharing(kScalars);
  const std::vector<Kernel> before = {Strided(100, 3, 0.7), TreeSum(), Strided(100, 3, 0.7)};
  const std::vector<Kernel> after = AfterSharing(sharing, before);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(Hash(after[i]), Hash(before[i]));
}

TEST(Sharing, NumbersThatFollowFromAnotherTakeNoScalar) {
  const auto kernel = [](int stride) {
    return MapKernel("strides", kF32, kF32, [&](Val x) {
      Val sum = x;
      Builder& b = *x.b;
      for (int row = 0; row < 8; ++row)
        sum = sum + b.Load(0, b.Builtin(BuiltinKind::kLocalX) + (row * stride + row % 2));
      return sum;
    });
  };
  KernelSharing sharing(kScalars);
  const std::vector<Kernel> after = AfterSharing(sharing, {kernel(100), kernel(140)});
  EXPECT_EQ(after[0].scalars.size(), 1U);
  EXPECT_EQ(Hash(after[0]), Hash(after[1]));
  EXPECT_EQ(Results(after[1]), Results(kernel(140)));
}

TEST(Sharing, StaysWithinTheScalarsThatThereAre) {
  for (const size_t most : {0U, 2U, 3U}) {
    KernelSharing sharing(most);
    const std::vector<Kernel> after =
        AfterSharing(sharing, {Strided(100, 3, 0.7), Strided(150, 5, 1.3)});
    EXPECT_EQ(Hash(after[0]) == Hash(after[1]), most == 3);  // a bound, a stride and a factor
    EXPECT_LE(after[1].scalars.size(), most);
  }
}

TEST(Sharing, LaterKernelsTakeWhatIsThere) {
  KernelSharing sharing(kScalars);
  const uint64_t first =
      Hash(AfterSharing(sharing, {Strided(100, 3, 0.7), Strided(150, 5, 1.3)})[0]);
  const std::vector<Kernel> later = AfterSharing(sharing, {Strided(60, 7, 4.4)});
  EXPECT_EQ(Hash(later[0]), first);
  EXPECT_EQ(Results(later[0]), Results(Strided(60, 7, 4.4)));
}

TEST(Sharing, TheSecondOfAKindLeavesRoomForTheThird) {
  KernelSharing sharing(kScalars);
  const Kernel alone = AfterSharing(sharing, {Strided(100, 3, 0.7)})[0];
  const uint64_t second = Hash(AfterSharing(sharing, {Strided(150, 5, 1.3)})[0]);
  EXPECT_NE(Hash(alone), second);
  EXPECT_EQ(Hash(AfterSharing(sharing, {Strided(60, 7, 4.4)})[0]), second);
}

// y[i] = x[a + i] + x[b + i] + x[c + i].
Kernel Sum3(int a, int b, int c) {
  return MakeKernel("sum", [&](Builder& k, Val i) {
    const uint16_t x = k.AddView(Reads("x", kF32, 0)), y = k.AddView(Writes("y", kF32, 1));
    k.If(i < 200, [&] { k.Store(y, i, k.Load(x, i + a) + k.Load(x, i + b) + k.Load(x, i + c)); });
  });
}

TEST(Sharing, WhatFitsByChanceStillFitsWhenTheRestHasCome) {
  const std::vector<Kernel> before = {Sum3(10, 15, 30), Sum3(12, 18, 36), Sum3(20, 7, 60),
                                      Sum3(5, 40, 80)};
  KernelSharing sharing(kScalars);
  const std::vector<Kernel> after = AfterSharing(sharing, before);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(Hash(after[i]), Hash(after[0]));
    EXPECT_EQ(Results(after[i]), Results(before[i]));
  }
}

TEST(Sharing, LanesOfAShuffleStayLiterals) {
  const auto kernel = [](int lane) {
    return MakeKernel("shuffle", [&](Builder& b, Val i) {
      const uint16_t x = b.AddView(Reads("x", kF32, 0)), y = b.AddView(Writes("y", kF32, 1));
      b.Store(y, i, b.Shuffle(b.Load(x, i), b.Int(lane)));
    });
  };
  KernelSharing sharing(kScalars);
  const std::vector<Kernel> after = AfterSharing(sharing, {kernel(1), kernel(2)});
  EXPECT_NE(Hash(after[0]), Hash(after[1]));
  EXPECT_TRUE(after[0].scalars.empty());
}

// One case of an op with what its kernels should make.
struct Compiled {
  ir::ConcreteCase c;
  std::unique_ptr<ir::Function> function;
  std::optional<Region> region;
  Program program;
};

std::vector<Compiled> CompileCases(const ir::OpDef& def, const Caps& caps) {
  std::vector<Compiled> out;
  const auto cases = ir::ConcreteCases(def);
  EXPECT_TRUE(cases.ok()) << cases.status();
  for (const ir::ConcreteCase& c : *cases) {
    if (!c.refuse.empty() || c.bench) continue;
    Compiled one{.c = c, .function = testing::FunctionOf(c.op, c.types())};
    auto region = Region::Of(*one.function, caps);
    if (!region.ok() || !CanGenerate(*region)) continue;
    one.region = *std::move(region);
    one.program = *Generate(*one.region);
    out.push_back(std::move(one));
  }
  return out;
}

class SharedCases : public ::testing::TestWithParam<const ir::OpDef*> {};

TEST_P(SharedCases, AgreeWithTheReference) {
  const Caps caps = testing::CpuCaps();
  std::vector<Compiled> all = CompileCases(*GetParam(), caps);
  std::vector<Kernel*> kernels;
  for (Compiled& one : all)
    for (Launch& l : one.program.launches) kernels.push_back(&l.kernel);
  KernelSharing sharing(kScalars);
  std::set<uint64_t> before, after;
  for (const Kernel* k : kernels) before.insert(Hash(*k));
  sharing.Share(kernels);
  for (const Kernel* k : kernels) after.insert(Hash(*k));
  RecordProperty("kernels", static_cast<int>(before.size()));
  RecordProperty("shared", static_cast<int>(after.size()));
  if (GetParam()->info.name == "relu") {
    EXPECT_LT(after.size(), before.size());
  }
  for (const Compiled& one : all) {
    SCOPED_TRACE(one.c.ToText());
    const auto inputs = ir::MakeInputs(one.c);
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    const auto operands = inputs->pointers();
    const auto want = ir::Evaluate(one.c.op, operands);
    ASSERT_TRUE(want.ok()) << want.status();
    std::vector<const ir::HostValue*> given;
    for (const ir::HostValue* v : operands)
      if (v != nullptr) given.push_back(v);
    const auto got = testing::RunProgram(*one.region, one.program, given);
    ASSERT_TRUE(got.ok()) << one.program.kernel << ": " << got.status();
    for (size_t i = 0; i < want->size(); ++i) {
      const absl::Status s = ir::CompareResult(one.c.op, operands, (*want)[i], (*got)[i], i);
      EXPECT_TRUE(s.ok()) << one.program.kernel << ": " << s;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, SharedCases,
                         ::testing::ValuesIn(ir::AllOps().begin(), ir::AllOps().end()),
                         [](const auto& info) { return std::string(info.param->info.name); });

}  // namespace
}  // namespace forge::codegen
