// SPDX-License-Identifier: Apache-2.0
#include "tools/parity/op_parity.h"

#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "runtime/backends.h"
#include "runtime/op_on_device.h"
#include "runtime/report.h"
#include "tools/parity/compiler_statistics.h"
#include "tools/support/case_filter.h"
#include "tools/support/tensor_io.h"
#include "tools/support/terminal.h"

namespace forge::tools {
namespace {

struct Tally {
  int passed = 0, in_parts = 0, refused = 0;
  std::vector<std::string> failed;
};

// Cases to run, and how.
struct Plan {
  const OpParityOptions& options;
  CaseFilter filter;
  CompilerStatistics statistics;
  std::filesystem::path dump = {};  // for kernels of the device at hand

  bool Has(const ir::ConcreteCase& c) const {
    if (!c.refuse.empty() || (c.bench && !options.compile_only)) return false;
    return filter.Takes(c);
  }
};

// Compiles a case with a kernel in several ways, named "CASE by CHOICE": the default, and of the
// others those that the driver does not refuse.
absl::Status CompileChoices(Plan& plan, const DeviceRef& device, const ir::ConcreteCase& c) {
  const ir::Types in = c.types();
  FORGE_ASSIGN_OR_RETURN(const ir::Types out, c.op.Infer(in));
  const CompileRequest request{.op = &c.op, .in = in, .out = out, .name = c.ToText()};
  const auto most = static_cast<size_t>(plan.options.choices);
  const std::vector<std::string> choices = device->Choices(request, most);
  for (const std::string& choice : choices) {
    const auto runner =
        OpRunner::Create(device, c.op, in, {.compile_only = true, .compile = {.choice = choice}});
    if (!runner.ok() && choice == choices[0]) return runner.status();
    if (!runner.ok()) continue;
    plan.statistics.Add(*device, fmt::format("{} by {}", c.ToText(), choice),
                        (*runner)->executable());
  }
  return absl::OkStatus();
}

absl::Status RunCase(Plan& plan, const DeviceRef& device, const ir::ConcreteCase& c,
                     OpSupport::Way way) {
  const bool parts = way == OpSupport::Way::kParts;
  if (plan.options.choices > 0 && !parts) return CompileChoices(plan, device, c);
  FORGE_ASSIGN_OR_RETURN(
      std::unique_ptr<OpOnDevice> runner,
      OpOnDevice::Create(device, c.op, c.types(), {.compile_only = plan.options.compile_only}));
  if (plan.options.compile_only) {
    // Parts are kernels that the cases of their own ops count.
    if (!parts) plan.statistics.Add(*device, c.ToText(), runner->executable());
    if (plan.dump.empty()) return absl::OkStatus();
    return DumpArtifacts(runner->executable(), plan.dump / FileName(c.ToText()));
  }
  FORGE_ASSIGN_OR_RETURN(ir::CaseInputs inputs, ir::MakeInputs(c));
  const auto pointers = inputs.pointers();
  FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> results, runner->Run(pointers));
  FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> reference, ir::Evaluate(c.op, pointers));
  for (size_t i = 0; i < results.size(); ++i)
    FORGE_RETURN_IF_ERROR(ir::CompareResult(c.op, pointers, reference[i], results[i], i));
  return absl::OkStatus();
}

Tally RunOp(Plan& plan, const DeviceRef& device, const ir::OpDef& def) {
  Tally tally;
  auto cases = ir::ConcreteCases(def);
  if (!cases.ok()) {
    tally.failed.push_back(std::string(Message(cases.status())));
    return tally;
  }
  for (const ir::ConcreteCase& c : *cases) {
    if (!plan.Has(c)) continue;
    const OpSupport::Way way = OpOnDevice::Support(*device, c.op, c.types()).way;
    if (way == OpSupport::Way::kRefused) {
      ++tally.refused;
      continue;
    }
    const absl::Status s = RunCase(plan, device, c, way);
    if (s.ok())
      ++(way == OpSupport::Way::kParts ? tally.in_parts : tally.passed);
    else
      tally.failed.push_back(c.ToText() + ": " + std::string(Message(s)));
  }
  return tally;
}

}  // namespace

absl::Status RunOpParity(const OpParityOptions& o, Tool& tool) {
  FORGE_ASSIGN_OR_RETURN(CaseFilter filter, CaseFilter::Parse(o.filter));
  Plan plan{.options = o, .filter = std::move(filter), .statistics = {}};
  Table table({"op", "device", "kernel", "decomposed", "refused", "failed"});
  nlohmann::json out = nlohmann::json::array();
  std::string failures;
  int failed = 0;
  for (const std::string& name : o.devices) {
    FORGE_ASSIGN_OR_RETURN(DeviceRef device, OpenDevice(name, {.statistics = o.compile_only}));
    if (!o.dump.empty()) plan.dump = std::filesystem::path(o.dump) / FileName(name);
    for (const ir::OpDef* def : ir::AllOps()) {
      const Tally t = RunOp(plan, device, *def);
      if (t.passed + t.in_parts + t.refused + t.failed.size() == 0) continue;  // filtered out
      table.Add({std::string(def->info.name), name, std::to_string(t.passed),
                 std::to_string(t.in_parts), std::to_string(t.refused),
                 std::to_string(t.failed.size())});
      out.push_back({{"op", std::string(def->info.name)},
                     {"device", name},
                     {"passed", t.passed},
                     {"in_parts", t.in_parts},
                     {"refused", t.refused},
                     {"failed", t.failed}});
      failed += static_cast<int>(t.failed.size());
      for (const std::string& f : t.failed) failures += fmt::format("{}: {}\n", name, f);
    }
  }
  if (out.empty()) return InvalidArgument("no case of any op matches '{}'", o.filter);
  if (tool.json())
    tool.SetResult(std::move(out));
  else
    std::cout << table.Text() << failures;
  FORGE_RETURN_IF_ERROR(
      plan.statistics.ShowOrWrite(o.show_statistics && !tool.json(), o.statistics));
  if (failed > 0) return Internal("{} cases differ from the reference or fail", failed);
  return absl::OkStatus();
}

}  // namespace forge::tools
