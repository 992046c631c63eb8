// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/self_test/measure_rates.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/platform.h"
#include "codegen/kernel/scalar.h"
#include "vk_runtime/device/device.h"
#include "vk_runtime/pipelines/fixed_launch.h"

namespace forge::vk {
namespace {

// How much faster caches are than memory, at the least.
constexpr double kClearly = 1.2;

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
// Of sets that caches may hold, an invocation reads a vector of each of so many lines.
constexpr int kLine = 8;  // vectors
constexpr uint32_t kLines = 4;
constexpr int64_t kPartBytes = int64_t{kLines} * kInvocations * kLine * kFloats * sizeof(float);
constexpr int kTurns = 4, kLeastTurns = 2;    // of all sets; the best counts
constexpr int64_t kTurnsUntil = 200'000'000;  // nanoseconds, after which there are no more
static_assert(kLargestSet / kSetStep % kCopied == 0);
constexpr uint64_t kUsualSet = kLargestSet / kSetStep;  // where the largest takes long to read
// Devices that copy so many bytes per second may have larger caches, and are soon done with them.
constexpr double kFast = 200e9;
constexpr double kFlops = 2.0 * kChainGroups * kInvocations * kFloats * kChains * kLinks;

// An invocation of a kernel that reads and writes vectors.
struct Lanes {
  codegen::Builder& b;
  uint16_t in = 0, out = 0;
  codegen::Type vector;
  Val group, local;
};
codegen::Kernel KernelOf(const char* name, absl::FunctionRef<void(const Lanes& l)> emit) {
  codegen::Kernel k;
  k.name = name;
  k.workgroup = {kInvocations, 1, 1};
  codegen::Builder b(k);
  const codegen::Type vector = codegen::Type{DType::kF32}.Lanes(kFloats);
  const uint16_t in = b.AddView({.name = "in", .elem = vector, .operand = 0});
  const uint16_t out =
      b.AddView({.name = "out", .elem = vector, .operand = 1, .reads = false, .writes = true});
  emit({b, in, out, vector, b.Builtin(codegen::BuiltinKind::kWorkgroupX),
        b.Builtin(codegen::BuiltinKind::kLocalX)});
  b.Finish();
  return k;
}

// Each invocation reads a vector and writes what `emit` makes of it.
codegen::Kernel KernelThat(const char* name,
                           absl::FunctionRef<Val(codegen::Builder& b, Val x)> emit) {
  return KernelOf(name, [&](const Lanes& l) {
    const Val i = l.group * static_cast<int>(kInvocations) + l.local;
    l.b.Store(l.out, i, emit(l.b, l.b.Load(l.in, i)));
  });
}

// Each workgroup reads a vector of each line of its part of a set, whose number is its x. Zeros add
// up to nothing to write, which no driver knows.
codegen::Kernel ReadingKernel() {
  return KernelOf("probe_cache", [](const Lanes& l) {
    codegen::Builder& b = l.b;
    const Val first = (l.group * static_cast<int>(kLines * kInvocations) + l.local) * kLine;
    const codegen::Builder::Range reads = {b.Int(0), b.Int(kLines), b.Int(1)};
    const Val sum = b.For(reads, {b.Literal(l.vector, 0)}, [&](Val i, const Vals& v) {
      return Vals{v[0] + b.Load(l.in, first + i * static_cast<int>(kInvocations * kLine))};
    })[0];
    b.If(b.Extract(sum, 0) != 0.0, [&] { b.Store(l.out, l.local, sum); });
  });
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
  VulkanDevice* device = nullptr;
  std::array<uint64_t, 2> bytes = {kCopied, kCopied};
  std::array<BufferRef, 2> buffers = {};

  // Of which the first has zeros.
  absl::Status Fill() {
    FORGE_ASSIGN_OR_RETURN(const BufferRef zeros, device->Allocate(Memory::kUpload, kCopied));
    FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> mapped, device->Map(*zeros));
    std::memset(mapped.data(), 0, mapped.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      FORGE_ASSIGN_OR_RETURN(buffers[i], device->Allocate(Memory::kDevice, bytes[i]));
    }
    for (uint64_t at = 0; at < bytes[0]; at += kCopied) {
      FORGE_ASSIGN_OR_RETURN(const Point done,
                             device->Copy({zeros, 0, buffers[0], at, kCopied}, {}));
      FORGE_RETURN_IF_ERROR(device->Wait(done, kMostWait));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<KernelCode> CodeOf(const codegen::Kernel& kernel) {
    return PrintCode(kernel, 2, device->context()->caps());
  }

  absl::StatusOr<SegmentRef> Record(const FixedLaunch& launch, size_t repeats) {
    const std::string name = launch.code.name;
    FORGE_ASSIGN_OR_RETURN(const ProgramRef program, MakeProgram(launch, device->pipelines()));
    const auto all = [&](size_t i) { return static_cast<int64_t>(bytes[i]); };
    const std::vector<Step> steps(
        repeats, Step{.program = program,
                      .operands = {{.slot = 0, .offset = 0, .bytes = all(0)},
                                   {.slot = 1, .offset = 0, .bytes = all(1), .writes = true}},
                      .scalars = {},
                      .label = name});
    const std::array<SlotSpec, 2> slots = {SlotSpec{bytes[0], false}, SlotSpec{bytes[1], false}};
    return device->Record({steps, slots, {}, false});
  }

  absl::StatusOr<double> Seconds(const SegmentRef& segment) {
    const int64_t begin = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(const Point done, device->Submit(segment, {buffers, {}, {}, nullptr}));
    FORGE_RETURN_IF_ERROR(device->Wait(done, kMostWait));
    return static_cast<double>(NowNanoseconds() - begin) * 1e-9;
  }

  // Of one dispatch of so many workgroups.
  absl::StatusOr<double> Seconds(const codegen::Kernel& kernel, uint32_t groups) {
    FORGE_ASSIGN_OR_RETURN(const KernelCode code, CodeOf(kernel));
    for (size_t repeats = 1;; repeats *= 4) {
      FORGE_ASSIGN_OR_RETURN(const SegmentRef segment,
                             Record({.code = code, .grid = {groups, 1, 1}}, repeats));
      double best = std::numeric_limits<double>::infinity();
      for (int run = 0; run < kTimes; ++run) {
        FORGE_ASSIGN_OR_RETURN(const double seconds, Seconds(segment));
        best = std::min(best, seconds);
      }
      if (repeats >= kMostRepeats || best >= kLongEnough)
        return best / static_cast<double>(repeats);
    }
  }
};

// Reads as many bytes of small sets as of the largest one. Sets take turns: others' work, or a
// clock that changes, is seen by all of them.
absl::StatusOr<int64_t> CacheBytes(Bench& bench) {
  FORGE_ASSIGN_OR_RETURN(const KernelCode code, bench.CodeOf(ReadingKernel()));
  const auto all = static_cast<int64_t>(bench.bytes[0]);
  std::vector<SegmentRef> sets;
  for (int64_t set = kSmallestSet; set <= all; set *= kSetStep) {
    FORGE_ASSIGN_OR_RETURN(
        SegmentRef segment,
        bench.Record({.code = code, .grid = {set / kPartBytes, all / set, 1}}, 1));
    sets.push_back(std::move(segment));
  }
  std::vector<double> best(sets.size(), std::numeric_limits<double>::infinity());
  const int64_t begin = NowNanoseconds();
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn >= kLeastTurns && NowNanoseconds() - begin > kTurnsUntil) break;
    for (size_t i = 0; i < sets.size(); ++i) {
      FORGE_ASSIGN_OR_RETURN(const double seconds, bench.Seconds(sets[i]));
      best[i] = std::min(best[i], seconds);
    }
  }
  return CacheBytesOf(best);
}

}  // namespace

absl::StatusOr<Rates> MeasureRates(VulkanDevice& device) {
  Bench bench{&device, {kUsualSet, kCopied}};
  FORGE_RETURN_IF_ERROR(bench.Fill());
  FORGE_ASSIGN_OR_RETURN(const double chains,
                         bench.Seconds(KernelThat("probe_multiply_adds", Chains), kChainGroups));
  const auto copy = [](codegen::Builder&, Val x) { return x; };
  FORGE_ASSIGN_OR_RETURN(const double copied,
                         bench.Seconds(KernelThat("probe_copy", copy), kCopyGroups));
  Rates rates{.flops = kFlops / chains, .bytes = 2.0 * kCopied / copied};
  if (rates.bytes > kFast) {
    bench.bytes[0] = kLargestSet;
    if (!bench.Fill().ok()) return rates;  // short of memory
  }
  FORGE_ASSIGN_OR_RETURN(rates.cache_bytes, CacheBytes(bench));
  return rates;
}

int64_t CacheBytesOf(std::span<const double> seconds) {
  int64_t cached = 0, set = kSmallestSet;
  for (const double s : seconds) {
    if (s > 0 && s * kClearly <= seconds.back()) cached = set;
    set *= kSetStep;
  }
  return cached;
}

bool CanBeCache(int64_t bytes) {
  return bytes == 0 || (bytes >= kSmallestSet && bytes < kLargestSet &&
                        std::has_single_bit(static_cast<uint64_t>(bytes)));
}

}  // namespace forge::vk
