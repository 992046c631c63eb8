// SPDX-License-Identifier: Apache-2.0
#include "tools/support/op_parity.h"

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/interpreter.h"
#include "ir/ops/bounds.h"
#include "runtime/backends.h"
#include "runtime/op_runner.h"
#include "tools/support/terminal.h"

namespace forge::tools {
namespace {

struct Tally {
  int passed = 0, unsupported = 0;
  std::vector<std::string> failed;
};

absl::Status RunCase(const DeviceRef& device, const ir::ConcreteCase& c, bool compile_only) {
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<OpRunner> runner,
                         OpRunner::Create(device, c.op, c.types(), {.compile_only = compile_only}));
  if (compile_only) return absl::OkStatus();
  FORGE_ASSIGN_OR_RETURN(ir::CaseInputs inputs, ir::MakeInputs(c));
  const auto pointers = inputs.pointers();
  FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> results, runner->Run(pointers));
  FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> reference, ir::Evaluate(c.op, pointers));
  for (size_t i = 0; i < results.size(); ++i)
    FORGE_RETURN_IF_ERROR(ir::CompareResult(c.op, pointers, reference[i], results[i], i));
  return absl::OkStatus();
}

Tally RunOp(const DeviceRef& device, const ir::OpDef& def, bool compile_only) {
  Tally tally;
  auto cases = ir::ConcreteCases(def);
  if (!cases.ok()) {
    tally.failed.push_back(std::string(Message(cases.status())));
    return tally;
  }
  for (const ir::ConcreteCase& c : *cases) {
    if (!c.refuse.empty() || (c.bench && !compile_only)) continue;
    if (!OpRunner::Supports(*device, c.op, c.types())) {
      ++tally.unsupported;
      continue;
    }
    const absl::Status s = RunCase(device, c, compile_only);
    if (s.ok())
      ++tally.passed;
    else
      tally.failed.push_back(c.ToText() + ": " + std::string(Message(s)));
  }
  return tally;
}

}  // namespace

absl::Status RunOpParity(const std::vector<std::string>& devices, bool compile_only, bool json) {
  Table table({"op", "device", "passed", "no kernel", "failed"});
  nlohmann::json out = nlohmann::json::array();
  std::string failures;
  int failed = 0;
  for (const std::string& name : devices) {
    FORGE_ASSIGN_OR_RETURN(DeviceRef device, OpenDevice(name, {}));
    for (const ir::OpDef* def : ir::AllOps()) {
      const Tally t = RunOp(device, *def, compile_only);
      table.Add({std::string(def->info.name), name, std::to_string(t.passed),
                 std::to_string(t.unsupported), std::to_string(t.failed.size())});
      out.push_back({{"op", std::string(def->info.name)},
                     {"device", name},
                     {"passed", t.passed},
                     {"no_kernel", t.unsupported},
                     {"failed", t.failed}});
      failed += static_cast<int>(t.failed.size());
      for (const std::string& f : t.failed) failures += fmt::format("{}: {}\n", name, f);
    }
  }
  if (json)
    std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  else
    std::cout << table.Text() << failures;
  if (failed > 0) return Internal("{} cases differ from the reference or fail", failed);
  return absl::OkStatus();
}

}  // namespace forge::tools
