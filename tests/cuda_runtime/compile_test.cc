// SPDX-License-Identifier: Apache-2.0
// Representative kernels through NVRTC, for every architecture. tests/lab/cuda-kernels compiles all
// of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/parallel.h"
#include "cuda_runtime/driver.h"
#include "ir/cases/case_inputs.h"
#include "tests/codegen/kernels.h"
#include "tests/cuda_runtime/nvrtc.h"

namespace forge::cuda {
namespace {

using codegen::Kernel;
using codegen::Type;
using codegen::Val;

constexpr const char* kArchitectures[] = {"sm_75", "sm_80",  "sm_86", "sm_89",
                                          "sm_90", "sm_100", "sm_120"};
constexpr size_t kMostKernels = 100;
// Ops whose values must stay in registers.
constexpr std::string_view kNoSpills[] = {"matmul",  "matmul_integer", "conv",   "attention",
                                          "softmax", "layer_norm",     "reduce", "log_softmax"};

// The representatives: of each op that is a kernel by itself, its first case, then cases of real
// size. The same in each run.
std::vector<ir::ConcreteCase> Representatives(const ir::Target& target) {
  std::vector<ir::ConcreteCase> small, large;
  for (const ir::OpDef* op : ir::AllOps()) {
    const auto cases = ir::ConcreteCases(*op);
    if (!cases.ok()) continue;
    const auto add = [&](bool bench, std::vector<ir::ConcreteCase>& out) {
      for (const ir::ConcreteCase& c : *cases) {
        if (!c.refuse.empty() || c.bench != bench) continue;
        const ir::Types in = c.types();
        const auto types = c.op.Infer(in);
        if (!types.ok() || c.op.is_view() || !target.Supports({c.op, in, *types})) continue;
        out.push_back(c);
        return;
      }
    };
    add(false, small);
    add(true, large);
  }
  small.insert(small.end(), large.begin(), large.end());
  // Every n-th, so that all families are among them.
  std::vector<ir::ConcreteCase> some;
  for (size_t i = 0; i < kMostKernels && i < small.size(); ++i)
    some.push_back(small[i * small.size() / std::min(kMostKernels, small.size())]);
  return some;
}

class SlowCudaCompileTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    nvrtc_ = FetchedNvrtc();
    if (absl::IsNotFound(nvrtc_.status())) GTEST_SKIP() << nvrtc_.status().message();
    ASSERT_TRUE(nvrtc_.ok()) << nvrtc_.status();
    const auto facts = FactsOfArchitecture(GetParam());
    ASSERT_TRUE(facts.ok());
    const auto context = Context::Create(nullptr, *facts);
    ASSERT_TRUE(context.ok());
    context_ = *context;
    auto device = CudaDevice::Open({context_, {.name = GetParam()}, nvrtc_}, {.cache = false});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
  }
  // Compiles a kernel that no op needs.
  void Compile(const Kernel& k) {
    KernelStore store(context_, nvrtc_, /*use_files=*/false);
    const auto loaded = store.Get(k, "");
    EXPECT_TRUE(loaded.ok()) << loaded.status() << codegen::PrintCuda(k, context_->caps(), "").text;
  }

  absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc_;
  ContextRef context_;
  std::shared_ptr<CudaDevice> device_;
};

// Bytes that a kernel may spill: NVRTC 13.5 keeps one index of this one on the stack at every level
// of register use, for this architecture alone.
double SpillsOf(std::string_view kernel, std::string_view architecture) {
  return architecture == "sm_120" && kernel == "attention_shared_32x32" ? 12 : 0;
}

TEST_P(SlowCudaCompileTest, CompilesRepresentativeKernels) {
  const std::vector<ir::ConcreteCase> cases = Representatives(device_->target());
  ASSERT_EQ(cases.size(), kMostKernels);
  std::vector<ir::Types> in, out;
  for (const ir::ConcreteCase& c : cases) {
    in.push_back(c.types());
    out.push_back(*c.op.Infer(in.back()));
  }
  std::vector<CompileRequest> requests;
  for (size_t i = 0; i < cases.size(); ++i)
    requests.push_back({.op = &cases[i].op, .in = in[i], .out = out[i], .name = cases[i].ToText()});
  const auto programs = device_->Compile(requests, [](size_t) { return true; });
  for (size_t i = 0; i < programs.size(); ++i) {
    SCOPED_TRACE(requests[i].name);
    ASSERT_TRUE(programs[i].ok()) << programs[i].status();
    const bool stays = std::find(std::begin(kNoSpills), std::end(kNoSpills), cases[i].op.name()) !=
                       std::end(kNoSpills);
    for (const KernelStatistic& s : (*programs[i])->statistics()) {
      EXPECT_TRUE(s.name != "registers" || s.value > 0) << s.kernel;
      EXPECT_TRUE(s.name != "spilled bytes" || s.value <= SpillsOf(s.kernel, GetParam()) || !stays)
          << s.kernel << " spills " << s.value << " bytes";
    }
  }
}

TEST_P(SlowCudaCompileTest, CompilesEveryInstruction) {
  for (const DType t : {DType::kF16, DType::kF32, DType::kF64, DType::kI8, DType::kU8, DType::kI16,
                        DType::kU16, DType::kI32, DType::kU32, DType::kI64, DType::kU64}) {
    SCOPED_TRACE(Name(t));
    for (const int lanes : {1, 4}) Compile(codegen::Arithmetic(Type{t}.Lanes(lanes)));
    for (const DType to : {DType::kF16, DType::kF64, DType::kI8, DType::kU32, DType::kI64})
      Compile(codegen::Conversion(Type{t}, Type{to}));
  }
  Compile(codegen::MakeKernel("wide_shared", [](codegen::Builder& b, Val i) {
    const Type wide = Type{DType::kF64}.Lanes(4);
    const uint16_t x = b.AddView(codegen::Reads("x", wide, 0)),
                   y = b.AddView(codegen::Writes("y", wide, 1)),
                   tile = b.AddView(codegen::Shared("tile", wide, 64));
    const Val local = b.Builtin(codegen::BuiltinKind::kLocalX);
    b.Store(tile, local, b.Load(x, i));
    b.Barrier();
    b.Store(y, i, b.Load(tile, b.Int(63) - local));
  }));
  Compile(codegen::TreeSum());
  Compile(codegen::SumBehindLoop());
}

std::string NameOf(const testing::TestParamInfo<const char*>& info) { return info.param; }
INSTANTIATE_TEST_SUITE_P(Architectures, SlowCudaCompileTest, testing::ValuesIn(kArchitectures),
                         NameOf);

}  // namespace
}  // namespace forge::cuda
