// SPDX-License-Identifier: Apache-2.0
// From ops to programs, on any device, also one that only compiles.
#include <cmath>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "tests/support/ir_values.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class CompileTest : public VulkanTest {
 protected:
  struct Node {
    ir::AnyOp op;
    ir::Types in, out;
  };
  static Node MakeNode(const ir::AnyOp& op, ir::Types in) {
    auto out = op.Infer(in);
    EXPECT_TRUE(out.ok()) << Message(out.status());
    return {op, std::move(in), *out};
  }
  ProgramRef Compile(const Node& node) {
    const CompileRequest request{&node.op, node.in, node.out, "a node"};
    auto made = device_->Compile({&request, 1}, [](size_t) { return true; });
    EXPECT_TRUE(made[0].ok()) << Message(made[0].status());
    return made[0].ok() ? *made[0] : nullptr;
  }
  // Runs a program of one launch per call over host data, twice, as drivers may stumble at what
  // follows a step; inputs are operands 0 .. n - 1.
  std::vector<float> Run(const ProgramRef& program, const std::vector<std::vector<float>>& inputs,
                         size_t out_elements) {
    std::vector<BufferRef> slots;
    Step step = MakeStep(program, {}, "node");
    std::vector<SlotSpec> specs;
    const auto add = [&](BufferRef b, bool writes) {
      step.operands.push_back(Use(static_cast<uint32_t>(slots.size()), 0, b->size(), writes));
      specs.push_back({b->size(), true});
      slots.push_back(std::move(b));
    };
    for (const auto& x : inputs) add(Upload(x), false);
    add(Upload(std::vector<float>(out_elements)), true);
    const BufferRef out = slots.back();
    if (program->scratch_bytes() != 0)
      add(*device_->Allocate(Memory::kDevice, program->scratch_bytes()), true);
    const std::vector<Step> steps(2, step);
    auto segment = device_->Record({steps, specs, {}});
    EXPECT_TRUE(segment.ok());
    auto point = device_->Submit(*segment, Args(slots));
    EXPECT_TRUE(point.ok()) << Message(point.status());
    EXPECT_TRUE(device_->Wait(*point, -1).ok());
    return Download<float>(out);
  }
  static std::vector<float> Waves(size_t n) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; ++i) v[i] = std::sin(static_cast<float>(i) * 0.37f);
    return v;
  }
};

TEST_F(CompileTest, MakesOneKernelOfEqualNodes) {
  const Node a = MakeNode(ir::Mul{}, {F32({5, 7}), F32({5, 7})});
  const Node b = MakeNode(ir::Mul{}, {F32({5, 7}), F32({5, 7})});
  const std::vector<CompileRequest> requests = {{&a.op, a.in, a.out, "first"},
                                                {&b.op, b.in, b.out, "second"}};
  std::atomic<size_t> last{0};
  auto made = device_->Compile(requests, [&](size_t done) {
    last = std::max<size_t>(last, done);
    return true;
  });
  ASSERT_EQ(made.size(), 2u);
  for (const auto& p : made) ASSERT_OK(p.status());
  EXPECT_EQ(last, 2u);
  EXPECT_EQ(device_->compile_counts().compiled, 1);
  EXPECT_FALSE((*made[0])->kernel().empty());
  const auto artifacts = (*made[0])->artifacts();
  ASSERT_EQ(artifacts.size(), 2u);
  EXPECT_NE(artifacts[0].name.find(".kernel"), std::string::npos);
  ASSERT_GE(artifacts[1].content.size(), 20u);
  EXPECT_EQ(artifacts[1].content[0], 0x03);  // SPIR-V's magic number, low byte first
}

// Where a driver compiles when it dispatches, numbers are scalars of one kernel.
TEST_F(CompileTest, MakesOneKernelOfNodesThatDifferInNumbers) {
  const std::vector<Node> nodes = {MakeNode(ir::Mul{}, {F32({5, 7}), F32({5, 7})}),
                                   MakeNode(ir::Mul{}, {F32({9, 13}), F32({9, 13})})};
  std::vector<CompileRequest> requests;
  for (const Node& n : nodes) requests.push_back({&n.op, n.in, n.out, "a node"});
  const auto made = device_->Compile(requests, [](size_t) { return true; });
  for (const auto& p : made) ASSERT_OK(p.status());
  EXPECT_EQ(device_->compile_counts().compiled, device_->context()->caps().runs_on_cpu ? 1 : 2);
  if (!Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  for (const auto& [program, n] : {std::pair(*made[0], 35), std::pair(*made[1], 117)}) {
    const auto x = Waves(n);
    const auto z = Run(program, {x, x}, n);
    for (int i = 0; i < n; ++i) ASSERT_EQ(z[i], x[i] * x[i]) << i << " of " << n;
  }
}

TEST_F(CompileTest, ComputesAProduct) {
  const ProgramRef program = Compile(MakeNode(ir::Mul{}, {F32({5, 7}), F32({5, 7})}));
  ASSERT_NE(program, nullptr);
  if (!Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  const auto x = Waves(35), y = Waves(70);
  const std::vector<float> y_part(y.begin() + 35, y.end());
  const auto z = Run(program, {x, y_part}, 35);
  for (size_t i = 0; i < 35; ++i) EXPECT_EQ(z[i], x[i] * y_part[i]);
}

TEST_F(CompileTest, TransposesWithTheHandWrittenShader) {
  const Node node = MakeNode(ir::Transpose{.permutation = {0, 2, 3, 1}}, {F32({2, 33, 5, 7})});
  codegen::Caps gpu;
  const auto shader = FindHandWritten(node.op, node.in, gpu);
  ASSERT_TRUE(shader.has_value());
  EXPECT_EQ(shader->scalars, (std::vector<int32_t>{33, 35}));
  EXPECT_FALSE(
      FindHandWritten(ir::Transpose{.permutation = {2, 1, 0}}, std::array{F32({2, 3, 4})}, gpu));
  const ProgramRef program = Compile(node);
  if (!Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  const auto x = Waves(2 * 33 * 35);
  const auto y = Run(program, {x}, x.size());
  for (size_t b = 0; b < 2; ++b)
    for (size_t r = 0; r < 33; ++r)
      for (size_t c = 0; c < 35; ++c) ASSERT_EQ(y[(b * 35 + c) * 33 + r], x[(b * 33 + r) * 35 + c]);
}

TEST_F(CompileTest, TransposesWhatOneStorageBufferCannotHoldWithASchedule) {
  codegen::Caps gpu;
  gpu.max_operand_bytes = 2 * 33 * 35 * 4;
  EXPECT_TRUE(TransposeShader(2, 33, 35, gpu));
  --gpu.max_operand_bytes;
  EXPECT_FALSE(TransposeShader(2, 33, 35, gpu));
}

// Binds parts of 4096 bytes; what comes before and behind must be left alone.
TEST_F(CompileTest, BindsInPartsWhatOneStorageBufferCannotHold) {
  const ScopedEnvironment limit("FORGE_VK_LIMITS", "max_operand_bytes=4096");
  Open();
  constexpr size_t kElements = 3500, kFrom = 64;
  const ProgramRef program = Compile(MakeNode(ir::Relu{}, {F32({kElements})}));
  ASSERT_NE(program, nullptr);
  const auto& launch = static_cast<const VulkanProgram&>(*program).launches()[0];
  ASSERT_EQ(launch.operands.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(launch.operands[i].offset, i % 4 * 4096);
    EXPECT_EQ(launch.operands[i].writes, launch.operands[i].step_operand == 1);
  }
  if (!Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  const auto x = Waves(kElements + kFrom);
  const std::vector<BufferRef> slots = {Upload(x), Upload(std::vector<float>(kElements + 128, 7))};
  const Step step = MakeStep(
      program, {Use(0, kFrom * 4, kElements * 4), Use(1, kFrom * 4, kElements * 4, true)}, "relu");
  const std::vector<SlotSpec> specs = {{slots[0]->size(), true}, {slots[1]->size(), true}};
  // What is read next waits for the last part too.
  const Step again =
      MakeStep(program, {Use(1, kFrom * 4, kElements * 4), Use(0, 0, kElements * 4, true)}, "relu");
  auto segment = device_->Record({std::vector{step, again}, specs, {}});
  ASSERT_OK(segment.status());
  auto point = device_->Submit(*segment, Args(slots));
  ASSERT_OK(point.status());
  ASSERT_OK(device_->Wait(*point, -1));
  const auto y = Download<float>(slots[1]), z = Download<float>(slots[0]);
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i], i < kFrom || i >= kElements + kFrom ? 7 : std::max(x[i], 0.0f)) << i;
  for (size_t i = 0; i < kElements; ++i) ASSERT_EQ(z[i], y[i + kFrom]) << i;
}

// Beyond the range that every device has, which is the only one that many have.
TEST_F(CompileTest, ComputesOnMoreThanTheGuaranteedRange) {
  constexpr int64_t kRows = 40, kColumns = 1 << 20;
  const ScopedEnvironment limit("FORGE_VK_LIMITS", "max_operand_bytes=134217728");
  Open();
  const ProgramRef program = Compile(MakeNode(ir::Relu{}, {F32({kRows, kColumns})}));
  ASSERT_NE(program, nullptr);
  if (!Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  std::vector<float> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(i % 8191) - 4000);
  const auto y = Run(program, {x}, x.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], std::max(x[i], 0.0f)) << i;
}

TEST_F(CompileTest, DividesAGridThatTakesTooLong) {
  // 50,000 workgroups of one float each, by a kernel made by hand.
  codegen::Kernel k;
  k.name = "count";
  k.workgroup = {1, 1, 1};
  k.grid = {50000, 1, 1};
  codegen::Builder b(k);
  const uint16_t view =
      b.AddView({.name = "y", .elem = codegen::kF32, .operand = 0, .reads = false, .writes = true});
  const codegen::Val at = b.Builtin(codegen::BuiltinKind::kWorkgroupX);
  b.Store(view, at, b.Convert(at, DType::kF32));
  b.Finish();
  const auto words = codegen::PrintSpirv(k, device_->context()->caps());
  auto pipeline = device_->pipelines().Get({.name = "count", .spirv = words, .operands = 1});
  ASSERT_OK(pipeline.status());
  if (!Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  PlannedLaunch launch;
  launch.pipeline = *pipeline;
  launch.name = "count";
  launch.operands = {{.step_operand = 0, .writes = true}};
  launch.grid = {LaunchNumber{.constant = 50000}, LaunchNumber{.constant = 1},
                 LaunchNumber{.constant = 1}};
  launch.seconds = 10;  // far too long for one submission
  VulkanProgram::Parts parts;
  parts.launches.push_back(launch);
  const auto y = Run(std::make_shared<VulkanProgram>(std::move(parts)), {}, 50000);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], static_cast<float>(i));
}

TEST_F(CompileTest, TellsWhatTheDriverSaysOfAKernel) {
  Open({.threads = 1, .cache = false, .statistics = true});
  const ProgramRef program = Compile(MakeNode(ir::Mul{}, {F32({5, 7}), F32({5, 7})}));
  ASSERT_NE(program, nullptr);
  if (!device_->context()->abilities().statistics) GTEST_SKIP() << "this driver tells nothing";
  double subgroup = 0;
  for (const KernelStatistic& s : program->statistics()) {
    EXPECT_FALSE(s.name.empty());
    if (s.name == "Subgroup size") subgroup = s.value;
  }
  EXPECT_GE(subgroup, 1);
}

TEST_F(CompileTest, RefusesWhatNoKernelTakes) {
  const Node strings = {ir::Mul{}, {ir::Type::Tensor(DType::kString, {3}), F32({3})}, {F32({3})}};
  const Verdict v = device_->target().Supports({strings.op, strings.in, strings.out});
  EXPECT_FALSE(v);
  EXPECT_FALSE(v.text().empty());
}

TEST_F(CompileTest, SupportsWhatItCompiles) {
  const Node node = MakeNode(ir::Mul{}, {F32({5, 7}), F32({5, 7})});
  const Verdict v = device_->target().Supports({node.op, node.in, node.out});
  EXPECT_TRUE(v) << v.text();
  EXPECT_GT(device_->target().Seconds({node.op, node.in, node.out}), 0);
}

}  // namespace
}  // namespace forge::vk
