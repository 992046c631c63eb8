// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/self_test/self_test.h"

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/process.h"
#include "runtime/backends.h"
#include "vk_runtime/pipelines/fixed_launch.h"
#include "vk_runtime/self_test/measure_rates.h"
#include "vk_runtime/self_test/probes.h"

namespace forge::vk {
namespace {

constexpr uint8_t kUnwritten = 0xa5;
constexpr std::string_view kExtension = ".selftest";

// What is wrong with the result of a probe; empty: nothing; nullopt: the device wrote none, or has
// no memory that could be written.
absl::StatusOr<std::optional<std::string>> FaultOf(VulkanDevice& device, const Probe& p) {
  const codegen::Caps& caps = device.context()->caps();
  FORGE_ASSIGN_OR_RETURN(const KernelCode code, PrintCode(KernelOf(p, caps), 2, caps));
  FORGE_ASSIGN_OR_RETURN(const ProgramRef program, MakeProgram({.code = code}, device.pipelines()));
  constexpr int64_t kIn = 2 * sizeof(ProbeWords), kOut = 3 * sizeof(ProbeWords);
  const Step step{.program = program,
                  .operands = {{.slot = 0, .offset = 0, .bytes = kIn},
                               {.slot = 1, .offset = 0, .bytes = kOut, .writes = true}},
                  .scalars = {},
                  .label = code.name};
  const auto in = device.Allocate(Memory::kUpload, kIn),
             out = device.Allocate(Memory::kReadback, kOut);
  if (!in.ok() || !out.ok()) return std::nullopt;
  const auto from = device.Map(**in), to = device.Map(**out);
  if (!from.ok() || !to.ok()) return std::nullopt;
  ProbeRun r{.a = p.input(false), .b = p.input(true), .lane = {}, .subgroup = {}, .out = {}};
  std::memcpy(from->data(), r.a.data(), sizeof(ProbeWords));
  std::memcpy(from->data() + sizeof(ProbeWords), r.b.data(), sizeof(ProbeWords));
  std::memset(to->data(), kUnwritten, to->size());
  const std::array<SlotSpec, 2> slots = {SlotSpec{kIn, false}, SlotSpec{kOut, false}};
  FORGE_ASSIGN_OR_RETURN(const SegmentRef segment,
                         device.Record({std::span(&step, 1), slots, {}, false}));
  const std::array<BufferRef, 2> buffers = {*in, *out};
  FORGE_ASSIGN_OR_RETURN(const Point done, device.Submit(segment, {buffers, {}, {}, nullptr}));
  FORGE_RETURN_IF_ERROR(device.Wait(done, -1));
  std::memcpy(r.lane.data(), to->data(), sizeof(ProbeWords));
  std::memcpy(r.subgroup.data(), to->data() + sizeof(ProbeWords), sizeof(ProbeWords));
  std::memcpy(r.out.data(), to->data() + 2 * sizeof(ProbeWords), sizeof(ProbeWords));
  if (std::all_of(to->begin(), to->end(), [](uint8_t b) { return b == kUnwritten; }))
    return std::nullopt;
  return Judge(p, r);
}

std::vector<Probe> ProbesOf(std::string_view feature, const codegen::Caps& caps) {
  std::vector<Probe> out;
  for (const Probe& p : Probes())
    if (p.feature == feature) out.push_back(p);
  const bool elements = feature == kElementsFeature;
  for (const codegen::MatrixShape& shape : caps.matrices)
    if (elements || MatrixFeature(shape) == feature) out.push_back(MatrixProbe(shape, elements));
  return out;
}

SelfTest NothingTried(std::string_view why) {
  SelfTest test;
  for (const Probe& p : Probes()) test.failed[p.feature] = why;
  test.failed["cooperative_matrix"] = test.failed[std::string(kElementsFeature)] = why;
  return test;
}

std::string OneLine(const std::string& text) { return absl::StrReplaceAll(text, {{"\n", " "}}); }

std::string LineOf(const Rates& r) {
  return fmt::format("{} {} {} {}", kRatesProbe, r.flops, r.bytes, r.cache_bytes);
}

std::optional<Rates> RatesIn(const std::string& words) {
  const std::vector<std::string> word = absl::StrSplit(words, ' ');
  Rates r{};
  const bool all = word.size() == 3 && absl::SimpleAtod(word[0], &r.flops) &&
                   absl::SimpleAtod(word[1], &r.bytes) && absl::SimpleAtoi(word[2], &r.cache_bytes);
  const auto sound = [](double rate) { return rate > 1 && rate < 1e18; };
  if (!all || !sound(r.flops) || !sound(r.bytes) || !CanBeCache(r.cache_bytes)) return std::nullopt;
  return r;
}

// Tried as features are: a driver may crash here too. Any other reason is one of the moment.
void TellRates(VulkanDevice& device, Driver::Tell tell) {
  tell(fmt::format("try {}", kRatesProbe));
  const absl::StatusOr<Rates> rates = MeasureRates(device);
  tell(rates.ok() ? LineOf(*rates)
                  : fmt::format("late {}: {}", kRatesProbe,
                                OneLine(std::string(Message(rates.status())))));
}

}  // namespace

bool SelfTest::Knows(std::string_view feature) const {
  return passed.find(feature) != passed.end() || failed.find(feature) != failed.end();
}

Failures SelfTest::Faults() const {
  Failures faults;
  for (const auto& [feature, what] : failed) faults[feature] = "self-test failed: " + what;
  for (const auto& [feature, what] : late)
    faults[feature] = "self-test not finished: " + what + "; off, and the next process tries again";
  return faults;
}

bool IsTried(std::string_view feature) {
  if (feature.starts_with(kMatrixFeatures)) return true;
  return std::any_of(Probes().begin(), Probes().end(),
                     [&](const Probe& p) { return p.feature == feature; });
}

absl::Status RunSelfTest(VulkanDevice& device, std::span<const std::string> known,
                         Driver::Tell tell) {
  tell(SelfTestReport::Title(device.context()->queries()));
  FORGE_ASSIGN_OR_RETURN(const std::optional<std::string> plain, FaultOf(device, PlainProbe()));
  if (plain && !plain->empty())
    return Unavailable("{} computes wrong sums: {}", device.info().name, *plain);
  for (const Feature& f : device.info().features) {
    if (!plain || !f.present || !IsTried(f.name) ||
        std::find(known.begin(), known.end(), f.name) != known.end())
      continue;
    tell("try " + f.name);
    std::string wrong;
    for (const Probe& p : ProbesOf(f.name, device.context()->caps())) {
      if (!wrong.empty()) continue;
      const auto fault = FaultOf(device, p);
      wrong = fault.ok() ? fault->value_or("nothing was written")
                         : std::string(Message(fault.status()));
    }
    tell(wrong.empty() ? "passed " + f.name : fmt::format("failed {}: {}", f.name, OneLine(wrong)));
    FORGE_RETURN_IF_ERROR(device.Health());
  }
  if (plain && std::find(known.begin(), known.end(), kRatesProbe) == known.end())
    TellRates(device, tell);
  tell("end");
  return absl::OkStatus();
}

std::string SelfTestReport::Title(const Queries& q) { return CacheTitle(q, "self-test 10"); }

SelfTestReport SelfTestReport::Read(const std::string& text, const Queries& q) {
  SelfTestReport report;
  for (const std::string& line : LinesBehind(Title(q), text)) {
    const size_t space = std::min(line.find(' '), line.size() - 1);
    const std::string word = line.substr(0, space), rest = line.substr(space + 1);
    if (word == "try") report.trying = rest;
    if (word == "passed" || word == "failed" || word == "late" || word == kRatesProbe)
      report.trying.clear();
    if (word == "passed") report.test.passed.emplace(rest);
    Failures* faults = word == "failed" ? &report.test.failed
                       : word == "late" ? &report.test.late
                                        : nullptr;
    if (const size_t colon = rest.find(": "); faults != nullptr && colon != std::string::npos)
      (*faults)[rest.substr(0, colon)] = rest.substr(colon + 2);
    if (word == kRatesProbe) report.test.rates = RatesIn(rest);
    report.whole = line == "end";
  }
  return report;
}

absl::StatusOr<SelfTest> TryInChild(const Queries& q, const SelfTestRequest& request) {
  const std::filesystem::path program = LibraryFolder() / "forge-self-test";
  SelfTest all = request.known;
  all.late.clear();
  for (;;) {
    std::vector<std::string> words = {"vulkan", std::to_string(request.index)};
    words.insert(words.end(), all.passed.begin(), all.passed.end());
    for (const auto& [feature, what] : all.Faults()) words.push_back(feature);
    if (all.rates) words.emplace_back(kRatesProbe);
    const absl::StatusOr<Ended> ended = RunToEnd(program, words, request.patience);
    if (!ended.ok()) return NothingTried(Message(ended.status()));
    const std::string fault = ended->fault.empty() ? "it left early" : ended->fault;
    SelfTestReport report = SelfTestReport::Read(ended->output, q);
    if (!report.trying.empty() && ended->silent)
      report.test.late[report.trying] = fault;
    else if (!report.trying.empty())
      report.test.failed[report.trying] = "the driver ended its process: " + fault;
    if (!report.whole && report.test.passed.empty() && report.test.Faults().empty())
      return Unavailable("{}: its self-test ended before the first test: {}",
                         q.properties.deviceName, fault);
    all.passed.merge(report.test.passed);
    all.failed.merge(report.test.failed);
    all.late.merge(report.test.late);
    if (report.test.rates) all.rates = report.test.rates;
    if (report.whole) return all;
  }
}

std::optional<SelfTest> ReadSelfTest(const Queries& q) {
  SelfTestReport report = SelfTestReport::Read(ReadCacheFile(CacheFile(q, kExtension)), q);
  if (!report.whole) return std::nullopt;
  return std::move(report.test);
}

absl::Status WriteSelfTest(const Queries& q, const SelfTest& test) {
  std::string text = SelfTestReport::Title(q) + "\n";
  for (const std::string& feature : test.passed) text += "passed " + feature + "\n";
  for (const auto& [feature, what] : test.failed)
    text += fmt::format("failed {}: {}\n", feature, OneLine(what));
  for (const auto& [feature, what] : test.late) text += fmt::format("late {}: {}\n", feature, what);
  if (test.rates) text += LineOf(*test.rates) + "\n";
  return WriteCacheFile(CacheFile(q, kExtension), text + "end\n");
}

}  // namespace forge::vk
