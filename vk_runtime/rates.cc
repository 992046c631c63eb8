// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/rates.h"

#include <cstring>

#include "base/platform.h"
#include "codegen/scalar.h"
#include "vk_runtime/device.h"
#include "vk_runtime/fixed_launch.h"

namespace forge::vk {
namespace {

using codegen::Val;
using codegen::Vals;

constexpr int64_t kMostWait = 10'000'000'000;  // nanoseconds
constexpr double kLongEnough = 2e-3;           // seconds: submitting takes some hundredths of it
constexpr size_t kMostRepeats = 64;
constexpr int kTimes = 8;  // of which the best counts: others may use the machine
constexpr uint32_t kInvocations = 64, kFloats = 4, kCopyGroups = 16384;
constexpr uint64_t kCopied = uint64_t{kCopyGroups} * kInvocations * kFloats * sizeof(float);
// The chains of an invocation, whose multiply-adds do not wait for each other, and their length.
constexpr int kChains = 4, kLinks = 64;
constexpr uint32_t kChainGroups = 1024;
constexpr double kFlops = 2.0 * kChainGroups * kInvocations * kFloats * kChains * kLinks;

// Each invocation reads four floats and writes what `emit` makes of them.
codegen::Kernel KernelThat(const char* name,
                           absl::FunctionRef<Val(codegen::Builder& b, Val x)> emit) {
  codegen::Kernel k;
  k.name = name;
  k.workgroup = {kInvocations, 1, 1};
  codegen::Builder b(k);
  const codegen::Type four = codegen::Type{DType::kF32}.Lanes(kFloats);
  const uint16_t in = b.AddView({.name = "in", .elem = four, .operand = 0});
  const uint16_t out =
      b.AddView({.name = "out", .elem = four, .operand = 1, .reads = false, .writes = true});
  const Val i = b.Builtin(codegen::BuiltinKind::kWorkgroupX) * static_cast<int>(kInvocations) +
                b.Builtin(codegen::BuiltinKind::kLocalX);
  b.Store(out, i, emit(b, b.Load(in, i)));
  b.Finish();
  return k;
}

Val Chains(codegen::Builder& b, Val x) {
  Vals chains;
  for (int c = 0; c < kChains; ++c) chains.push_back(x + b.Literal(x.type(), c));
  const codegen::Builder::Range links = {.begin = b.Int(0), .end = b.Int(kLinks), .step = b.Int(1)};
  chains = b.For(links, std::move(chains), [&](Val, Vals v) {
    for (Val& one : v) one = b.Emit(codegen::Code::kFma, x.type(), {one, x, x});
    return v;
  });
  for (int c = 1; c < kChains; ++c) chains[0] = chains[0] + chains[c];
  return chains[0];
}

// A device with memory to read and to write.
struct Bench {
  VulkanDevice& device;
  std::array<BufferRef, 2> buffers = {};

  absl::Status Fill() {
    FORGE_ASSIGN_OR_RETURN(const BufferRef zeros, device.Allocate(Memory::kUpload, kCopied));
    FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> mapped, device.Map(*zeros));
    std::memset(mapped.data(), 0, mapped.size());
    for (BufferRef& b : buffers) {
      FORGE_ASSIGN_OR_RETURN(b, device.Allocate(Memory::kDevice, kCopied));
      FORGE_ASSIGN_OR_RETURN(const Point done, device.Copy({zeros, 0, b, 0, kCopied}, {}));
      FORGE_RETURN_IF_ERROR(device.Wait(done, kMostWait));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Seconds(const Step& step, size_t repeats) {
    const std::vector<Step> steps(repeats, step);
    const std::array<SlotSpec, 2> slots = {SlotSpec{kCopied, false}, SlotSpec{kCopied, false}};
    FORGE_ASSIGN_OR_RETURN(const SegmentRef segment, device.Record({steps, slots, {}, false}));
    double best = 0;
    for (int run = 0; run < kTimes; ++run) {
      const int64_t begin = NowNanoseconds();
      FORGE_ASSIGN_OR_RETURN(const Point done, device.Submit(segment, {buffers, {}, {}, nullptr}));
      FORGE_RETURN_IF_ERROR(device.Wait(done, kMostWait));
      const double seconds = static_cast<double>(NowNanoseconds() - begin) * 1e-9;
      if (run == 0 || seconds < best) best = seconds;
    }
    return best / static_cast<double>(repeats);
  }

  // Of one dispatch of so many workgroups.
  absl::StatusOr<double> Seconds(const codegen::Kernel& kernel, uint32_t groups) {
    FORGE_ASSIGN_OR_RETURN(KernelCode code, KernelCode::Of(kernel, 2, device.context()->caps()));
    FORGE_ASSIGN_OR_RETURN(
        const ProgramRef program,
        MakeProgram({.code = std::move(code), .grid = {groups, 1, 1}}, device.pipelines()));
    constexpr auto kAll = static_cast<int64_t>(kCopied);
    const Step step{.program = program,
                    .operands = {{.slot = 0, .offset = 0, .bytes = kAll},
                                 {.slot = 1, .offset = 0, .bytes = kAll, .writes = true}},
                    .scalars = {},
                    .label = kernel.name};
    for (size_t repeats = 1;; repeats *= 4) {
      FORGE_ASSIGN_OR_RETURN(const double seconds, Seconds(step, repeats));
      if (repeats >= kMostRepeats || seconds * static_cast<double>(repeats) >= kLongEnough)
        return seconds;
    }
  }
};

double BytesOf(ir::TypeSpan types) {
  double sum = 0;
  for (const ir::Type& t : types) {
    if (!t) continue;
    const absl::StatusOr<ir::Dim> bytes = t.bytes();
    if (bytes.ok() && bytes->is_constant()) sum += static_cast<double>(bytes->constant());
  }
  return sum;
}

double FlopsOf(const ir::Candidate& node) {
  const ir::OpDef& def = node.op.def();
  if (def.cost == nullptr) return 0;
  const ir::Dim flops = def.cost(def, node.op.self(), node.in).flops;
  return flops.is_constant() ? static_cast<double>(flops.constant()) : 0;
}

}  // namespace

Rates Rates::Of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return {.flops = 500e9, .bytes = 100e9};
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return {.flops = 5e9, .bytes = 2e9};
    default:
      return {.flops = 50e9, .bytes = 10e9};
  }
}

double Rates::Seconds(const ir::Candidate& node) const {
  return std::max(FlopsOf(node) / flops, (BytesOf(node.in) + BytesOf(node.out)) / bytes);
}

absl::StatusOr<Rates> MeasureRates(VulkanDevice& device) {
  Bench bench{device};
  FORGE_RETURN_IF_ERROR(bench.Fill());
  FORGE_ASSIGN_OR_RETURN(const double chains,
                         bench.Seconds(KernelThat("probe_multiply_adds", Chains), kChainGroups));
  const auto copy = [](codegen::Builder&, Val x) { return x; };
  FORGE_ASSIGN_OR_RETURN(const double copied,
                         bench.Seconds(KernelThat("probe_copy", copy), kCopyGroups));
  return Rates{.flops = kFlops / chains, .bytes = 2.0 * kCopied / copied};
}

}  // namespace forge::vk
