// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/self_test.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "base/platform.h"
#include "codegen/kernel_ir.h"

namespace forge::vk {
namespace {

using codegen::Builder;
using codegen::BuiltinKind;
using codegen::Code;
using codegen::Val;

constexpr uint32_t kLanes = 64;                // invocations of a probe: one workgroup
constexpr int64_t kPatience = 20'000'000'000;  // nanoseconds
using Words = std::array<uint32_t, kLanes>;

// What a probe's kernel is given and left, one word for each invocation.
struct Run {
  Words a, b;                 // inputs
  Words lane, subgroup, out;  // where the invocation stood, and its result
};

struct Probe {
  const char* feature;
  bool in_subgroup;                       // may the kernel ask where it stands?
  Val (*emit)(Builder& b, Val x, Val y);  // u32 to u32
  uint32_t (*expect)(const Run& r, const std::vector<uint32_t>& mates, uint32_t i);
  Words (*input)(bool second);
};

Words Numbers(bool second) {
  Words w;
  for (uint32_t i = 0; i < kLanes; ++i) w[i] = (i * 2654435761u >> 7) % (second ? 251 : 1009);
  return w;
}

// Every pair of these stands in some invocation.
Words Specials(bool second) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kValues[8] = {0.0f, -0.0f, 1.0f, -1.0f, kInf, -kInf, kNan, 3.0f};
  Words w;
  for (uint32_t i = 0; i < kLanes; ++i)
    w[i] = std::bit_cast<uint32_t>(kValues[second ? i % 8 : i / 8]);
  return w;
}
Words Denormals(bool second) {
  Words w;
  for (uint32_t i = 0; i < kLanes; ++i)
    w[i] = second ? std::bit_cast<uint32_t>(1.0f) : 1 + i * 100003;
  return w;
}

float F(uint32_t bits) { return std::bit_cast<float>(bits); }
// Any NaN is as good as another.
uint32_t Bits(float v) { return std::isnan(v) ? 0x7fc00000u : std::bit_cast<uint32_t>(v); }

Val AsFloat(Builder& b, Val v) { return b.Emit(Code::kBitcast, codegen::kF32, {v}); }
Val AsWord(Builder& b, Val v) {
  const Val nan = b.Emit(Code::kEq, codegen::kBool, {v, v});
  return b.Emit(
      Code::kSelect, codegen::kU32,
      {nan, b.Emit(Code::kBitcast, codegen::kU32, {v}), b.Bits(codegen::kU32, 0x7fc00000u)});
}

uint32_t SumOf(const Run& r, const std::vector<uint32_t>& mates, uint32_t) {
  uint32_t sum = 0;
  for (uint32_t m : mates) sum += r.a[m];
  return sum;
}
uint32_t ScanOf(const Run& r, const std::vector<uint32_t>& mates, uint32_t i) {
  uint32_t sum = 0;
  for (uint32_t m : mates)
    if (r.lane[m] <= r.lane[i]) sum += r.a[m];
  return sum;
}
// What the neighbour holds; anything where there is none.
uint32_t NeighbourOf(const Run& r, const std::vector<uint32_t>& mates, uint32_t i) {
  for (uint32_t m : mates)
    if (r.lane[m] == (r.lane[i] ^ 1)) return r.a[m];
  return r.out[i];
}
uint32_t BallotOf(const Run& r, const std::vector<uint32_t>& mates, uint32_t) {
  uint32_t bits = 0;
  for (uint32_t m : mates)
    if (r.lane[m] < 32 && r.a[m] > r.b[m]) bits |= 1u << r.lane[m];
  return bits;
}

constexpr Probe kProbes[] = {
    {"subgroup_arithmetic", true,
     [](Builder& b, Val x, Val) { return b.SubgroupReduce(codegen::ReduceKind::kSum, x); }, SumOf,
     Numbers},
    {"subgroup_arithmetic", true,
     [](Builder& b, Val x, Val) { return b.SubgroupScan(codegen::ReduceKind::kSum, x); }, ScanOf,
     Numbers},
    {"subgroup_shuffle", true, [](Builder& b, Val x, Val) { return b.ShuffleXor(x, 1); },
     NeighbourOf, Numbers},
    {"subgroup_shuffle", true,
     [](Builder& b, Val x, Val) {
       const Val lane = b.Builtin(BuiltinKind::kLane);
       return b.Shuffle(x, b.Emit(Code::kXor, codegen::kI32, {lane, b.Int(1)}));
     },
     NeighbourOf, Numbers},
    {"subgroup_ballot", true,
     [](Builder& b, Val x, Val y) {
       return b.Extract(b.Ballot(b.Emit(Code::kLt, codegen::kBool, {y, x})), 0);
     },
     BallotOf, Numbers},
    {"int_dot", false,
     [](Builder& b, Val x, Val y) {
       return b.Emit(Code::kBitcast, codegen::kU32,
                     {b.Dot4(codegen::DotKind::kSigned, b.Emit(Code::kMul, codegen::kU32, {x, x}),
                             b.Emit(Code::kMul, codegen::kU32, {y, x}), b.Int(7))});
     },
     [](const Run& r, const std::vector<uint32_t>&, uint32_t i) {
       const uint32_t x = r.a[i] * r.a[i], y = r.b[i] * r.a[i];
       int32_t sum = 7;
       for (int s = 0; s < 32; s += 8)
         sum += static_cast<int8_t>(x >> s & 255) * static_cast<int8_t>(y >> s & 255);
       return static_cast<uint32_t>(sum);
     },
     Numbers},
    {"signed_zero_inf_nan", false,
     [](Builder& b, Val x, Val y) {
       return AsWord(b, b.Emit(Code::kMul, codegen::kF32, {AsFloat(b, x), AsFloat(b, y)}));
     },
     [](const Run& r, const std::vector<uint32_t>&, uint32_t i) {
       return Bits(F(r.a[i]) * F(r.b[i]));
     },
     Specials},
    {"signed_zero_inf_nan", false,
     [](Builder& b, Val x, Val y) {
       return AsWord(b, b.Emit(Code::kSub, codegen::kF32, {AsFloat(b, x), AsFloat(b, y)}));
     },
     [](const Run& r, const std::vector<uint32_t>&, uint32_t i) {
       return Bits(F(r.a[i]) - F(r.b[i]));
     },
     Specials},
    {"denorm_preserve", false,
     [](Builder& b, Val x, Val y) {
       return AsWord(b, b.Emit(Code::kMul, codegen::kF32, {AsFloat(b, x), AsFloat(b, y)}));
     },
     [](const Run& r, const std::vector<uint32_t>&, uint32_t i) {
       return Bits(F(r.a[i]) * F(r.b[i]));
     },
     Denormals},
};

codegen::Kernel KernelOf(const Probe& p) {
  codegen::Kernel k;
  k.name = fmt::format("probe_{}", p.feature);
  k.workgroup = {kLanes, 1, 1};
  Builder b(k);
  const uint16_t in = b.AddView({.name = "in", .elem = codegen::kU32, .operand = 0});
  const uint16_t out = b.AddView(
      {.name = "out", .elem = codegen::kU32, .operand = 1, .reads = false, .writes = true});
  const Val i = b.Builtin(BuiltinKind::kLocalX);
  const auto plus = [&](uint32_t n) {
    return b.Emit(Code::kAdd, codegen::kI32, {i, b.Int(n * kLanes)});
  };
  const Val result = p.emit(b, b.Load(in, i), b.Load(in, plus(1)));
  const auto word = [&](BuiltinKind which) {
    return p.in_subgroup ? b.Emit(Code::kBitcast, codegen::kU32, {b.Builtin(which)})
                         : b.Bits(codegen::kU32, 0);
  };
  b.Store(out, i, word(BuiltinKind::kLane));
  b.Store(out, plus(1), word(BuiltinKind::kSubgroup));
  b.Store(out, plus(2), result);
  b.Finish();
  return k;
}

// Runs `p` with the inputs of `r` and fills in the rest of it. False: the device wrote nothing.
absl::StatusOr<bool> Execute(VulkanDevice& device, const Probe& p, Run& r) {
  const codegen::Kernel kernel = KernelOf(p);
  FORGE_RETURN_IF_ERROR(codegen::Verify(kernel, device.context()->caps()));
  const std::vector<uint32_t> words = codegen::PrintSpirv(kernel, device.context()->caps());
  PlannedLaunch launch;
  FORGE_ASSIGN_OR_RETURN(
      launch.pipeline,
      device.pipelines().Get({.name = kernel.name, .spirv = words, .operands = 2}));
  launch.name = kernel.name;
  launch.operands = {{.step_operand = 0}, {.step_operand = 1, .reads = false, .writes = true}};
  for (LaunchNumber& n : launch.grid) n.constant = 1;
  VulkanProgram::Parts parts;
  parts.launches.push_back(std::move(launch));
  constexpr int64_t kIn = 2 * sizeof(Words), kOut = 3 * sizeof(Words);
  const Step step{.program = std::make_shared<VulkanProgram>(std::move(parts)),
                  .operands = {{.slot = 0, .offset = 0, .bytes = kIn},
                               {.slot = 1, .offset = 0, .bytes = kOut, .writes = true}},
                  .scalars = {},
                  .label = kernel.name};
  FORGE_ASSIGN_OR_RETURN(const BufferRef in, device.Allocate(Memory::kUpload, kIn));
  FORGE_ASSIGN_OR_RETURN(const BufferRef out, device.Allocate(Memory::kReadback, kOut));
  const auto from = device.Map(*in), to = device.Map(*out);
  if (!from.ok() || !to.ok()) return false;
  std::memcpy(from->data(), r.a.data(), sizeof(Words));
  std::memcpy(from->data() + sizeof(Words), r.b.data(), sizeof(Words));
  std::memset(to->data(), 0xa5, to->size());
  const std::array<SlotSpec, 2> slots = {SlotSpec{kIn, false}, SlotSpec{kOut, false}};
  FORGE_ASSIGN_OR_RETURN(const SegmentRef segment,
                         device.Record({std::span(&step, 1), slots, {}, false}));
  const std::array<BufferRef, 2> buffers = {in, out};
  FORGE_ASSIGN_OR_RETURN(const Point done, device.Submit(segment, {buffers, {}, {}, nullptr}));
  FORGE_RETURN_IF_ERROR(device.Wait(done, kPatience));
  std::memcpy(r.lane.data(), to->data(), sizeof(Words));
  std::memcpy(r.subgroup.data(), to->data() + sizeof(Words), sizeof(Words));
  std::memcpy(r.out.data(), to->data() + 2 * sizeof(Words), sizeof(Words));
  return r.lane[0] != 0xa5a5a5a5u || r.out[0] != 0xa5a5a5a5u;
}

// What is wrong with the result; empty: nothing.
std::string Judge(const Probe& p, const Run& r) {
  std::map<uint32_t, std::vector<uint32_t>> subgroups;
  for (uint32_t i = 0; i < kLanes; ++i) subgroups[r.subgroup[i]].push_back(i);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t expected = p.expect(r, subgroups[r.subgroup[i]], i);
    if (r.out[i] != expected)
      return fmt::format("invocation {} computed {:#x} instead of {:#x}", i, r.out[i], expected);
  }
  return {};
}

std::filesystem::path PathOf(const Queries& q) {
  std::filesystem::path path = PipelineFilePath(q);
  if (!path.empty()) path.replace_extension(".selftest");
  return path;
}

// The first line: a new driver is tried anew, and so is an old one by new probes.
std::string Title(const Queries& q) {
  constexpr int kVersion = 1;
  return fmt::format("forge self-test {} of {} driver {:#x}", kVersion, q.properties.deviceName,
                     q.properties.driverVersion);
}

}  // namespace

bool IsTried(std::string_view feature) {
  return std::any_of(std::begin(kProbes), std::end(kProbes),
                     [&](const Probe& p) { return p.feature == feature; });
}

SelfTest RunSelfTest(VulkanDevice& device) {
  SelfTest test;
  for (const Probe& p : kProbes) {
    const auto& list = device.info().features;
    if (test.failed.count(p.feature) != 0 ||
        std::none_of(list.begin(), list.end(),
                     [&](const Feature& f) { return f.present && f.name == p.feature; }))
      continue;
    Run r{.a = p.input(false), .b = p.input(true), .lane = {}, .subgroup = {}, .out = {}};
    const absl::StatusOr<bool> ran = Execute(device, p, r);
    if (!ran.ok()) {
      test.failed[p.feature] = std::string(Message(ran.status()));
      if (!device.Health().ok()) return test;
      continue;
    }
    if (!*ran) return SelfTest{};
    test.ran = true;
    if (std::string wrong = Judge(p, r); !wrong.empty()) test.failed[p.feature] = std::move(wrong);
  }
  return test;
}

std::optional<SelfTest> ReadSelfTest(const Queries& q) {
  const std::filesystem::path path = PathOf(q);
  const absl::StatusOr<Bytes> bytes =
      path.empty() ? absl::StatusOr<Bytes>(NotFound("")) : MapFile(path);
  if (!bytes.ok()) return std::nullopt;
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto line = [&]() -> std::optional<std::string_view> {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view l = text.substr(0, end);
    text.remove_prefix(end + 1);
    return l;
  };
  if (line() != Title(q)) return std::nullopt;
  SelfTest test;
  while (const auto l = line()) {
    if (*l == "ran") test.ran = true;
    if (*l == "end") return test;
    if (const size_t colon = l->find(": "); colon != std::string_view::npos)
      test.failed[std::string(l->substr(0, colon))] = std::string(l->substr(colon + 2));
  }
  return std::nullopt;
}

absl::Status WriteSelfTest(const Queries& q, const SelfTest& test) {
  const std::filesystem::path path = PathOf(q);
  if (path.empty()) return absl::OkStatus();
  std::string text = Title(q) + "\n";
  if (test.ran) text += "ran\n";
  for (const auto& [feature, what] : test.failed) {
    std::string one_line = what;
    std::replace(one_line.begin(), one_line.end(), '\n', ' ');
    fmt::format_to(std::back_inserter(text), "{}: {}\n", feature, one_line);
  }
  text += "end\n";
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return Internal("{}: {}", path.parent_path().string(), error.message());
  return WriteFile(path, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

}  // namespace forge::vk
