// SPDX-License-Identifier: Apache-2.0
// forge-inspect: what is in a model, what the passes make of it, and what a step's kernel is.
#include <algorithm>
#include <climits>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <spirv-tools/libspirv.hpp>

#include "base/platform.h"
#include "formats/load.h"
#include "formats/model_bin.h"
#include "runtime/backends.h"
#include "runtime/executable.h"
#include "runtime/lower.h"
#include "runtime/session.h"
#include "tools/support/dims.h"
#include "tools/support/model_page.h"
#include "tools/support/pass_report.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string model, pass, html, device = "reference";
  std::vector<std::string> dims;
  int kernel = -1;
  bool text = false, weights = false, verify = false, stats = false;
};

std::string_view RoleName(ir::Variable::Role r) {
  switch (r) {
    case ir::Variable::Role::kConstant:
      return "constant";
    case ir::Variable::Role::kParameter:
      return "parameter";
    case ir::Variable::Role::kState:
      return "state";
  }
  return "";
}

void PrintWeights(const ir::Module& m) {
  Table table({"variable", "role", "type", "bytes"});
  for (const auto& v : m.variables())
    table.Add({v->name, std::string(RoleName(v->role)), v->type.ToText(),
               v->init ? std::to_string(v->init->bytes.size()) : "zeros"});
  std::cout << table.Text();
}

void PrintSummary(const std::string& path, const ir::Module& m) {
  size_t bytes = 0;
  for (const auto& v : m.variables()) bytes += v->init ? v->init->bytes.size() : 0;
  std::cout << Bold(path)
            << fmt::format(": {} functions, {} variables, {} of weights\n", m.functions().size(),
                           m.variables().size(), Bytes(bytes));
  for (const auto& f : m.functions()) {
    std::map<std::string, int> kinds;
    for (const ir::Node& n : f->nodes()) ++kinds[std::string(n.op.name())];
    std::cout << fmt::format("function {}: {} nodes\n", f->name(), f->nodes().size());
    for (const auto& a : f->arguments())
      std::cout << fmt::format("  input   {}: {}\n", a.name, f->type(a.value).ToText());
    for (const auto& r : f->results())
      std::cout << fmt::format("  output  {}: {}\n", r.name, f->type(r.value).ToText());
    Table table({"  op", "nodes"});
    for (const auto& [name, n] : kinds) table.Add({"  " + name, std::to_string(n)});
    std::cout << table.Text();
  }
  for (const auto& [key, value] : m.metadata)
    std::cout << fmt::format("metadata {} = {}\n", key,
                             value.size() > 200 ? value.substr(0, 200) + "..." : value);
}

nlohmann::json SummaryJson(const ir::Module& m) {
  nlohmann::json functions = nlohmann::json::array(), variables = nlohmann::json::array(),
                 metadata = nlohmann::json::object();
  for (const auto& f : m.functions()) {
    nlohmann::json nodes = nlohmann::json::array(), inputs = nlohmann::json::array(),
                   outputs = nlohmann::json::array();
    for (const ir::Node& n : f->nodes()) {
      std::vector<std::string> results;
      for (uint16_t k = 0; k < n.outs; ++k) results.push_back(f->type(n.first_out + k).ToText());
      nodes.push_back(
          {{"op", n.op.ToText()}, {"types", results}, {"from", n.from ? n.from->ToText() : ""}});
    }
    for (const auto& a : f->arguments())
      inputs.push_back({{"name", a.name}, {"type", f->type(a.value).ToText()}});
    for (const auto& r : f->results())
      outputs.push_back({{"name", r.name}, {"type", f->type(r.value).ToText()}});
    functions.push_back(
        {{"name", f->name()}, {"inputs", inputs}, {"outputs", outputs}, {"nodes", nodes}});
  }
  for (const auto& v : m.variables())
    variables.push_back(
        {{"name", v->name}, {"role", std::string(RoleName(v->role))}, {"type", v->type.ToText()}});
  for (const auto& [key, value] : m.metadata) metadata[key] = value;
  return {{"functions", functions}, {"variables", variables}, {"metadata", metadata}};
}

nlohmann::json ChangeJson(std::string_view pass, const ir::Function& f,
                          const PassReport::Change& c) {
  nlohmann::json ops = nlohmann::json::object();
  for (const auto& [name, n] : c.ops) ops[name] = {n.first, n.second};
  return {{"pass", std::string(pass)},
          {"function", f.name()},
          {"nodes", {c.nodes_before, c.nodes_after}},
          {"ops", ops},
          {"diff", c.diff}};
}

void PrintChange(std::string_view pass, const ir::Function& f, const PassReport::Change& c) {
  std::cout << Bold(SummaryOf(pass, f.name(), c)) << "\n";
  for (const std::string& line : SplitLines(c.diff)) std::cout << Coloured(line) << "\n";
  if (c.diff.empty()) std::cout << "(nothing changed)\n";
  std::cout << "\n";
}

// Lowers the model, and binds it where numbers are given or `pass` needs them; `observe` is told of
// each pass.
absl::Status RunPasses(const Options& o, const std::shared_ptr<const Model>& model,
                       std::function<void(std::string_view, const ir::Function&)> observe) {
  const auto names = PassNames();
  if (o.pass != "all" && std::find(names.begin(), names.end(), o.pass) == names.end())
    return InvalidArgument("no pass '{}'; there are {} and all", o.pass, fmt::join(names, ", "));
  FORGE_ASSIGN_OR_RETURN(auto dims, ParseDims(o.dims));
  FORGE_ASSIGN_OR_RETURN(DeviceRef device, OpenDevice(o.device, {}));
  SessionOptions options;
  options.dims = dims;
  options.compile_only = true;
  options.observe = std::move(observe);
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(model, device, options));
  const bool bound = !dims.empty() || o.pass == "bind" || o.pass == "encode" || o.pass == "pack";
  return bound ? session->Bind(dims) : absl::OkStatus();
}

// What a pass, or each, did to the model; with --text, the whole function after it.
absl::Status PrintPasses(const Options& o, const std::shared_ptr<const Model>& model, bool json) {
  PassReport report;
  nlohmann::json changes = nlohmann::json::array();
  for (const auto& f : model->module().functions()) report.Begin(*f);
  FORGE_RETURN_IF_ERROR(RunPasses(o, model, [&](std::string_view pass, const ir::Function& f) {
    const PassReport::Change change = report.After(f);
    if (o.pass != "all" && o.pass != pass) return;
    if (json)
      changes.push_back(ChangeJson(pass, f, change));
    else if (o.text)
      std::cout << Bold(SummaryOf(pass, f.name(), change)) << "\n" << ir::ToText(f) << "\n";
    else
      PrintChange(pass, f, change);
  }));
  if (json)
    std::cout << changes.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return absl::OkStatus();
}

absl::Status WritePage(const Options& o, const Model& model, const std::string& title,
                       std::span<const ir::Function* const> functions) {
  const std::string page =
      ModelPageHtml({.title = title, .metadata = model.module().metadata}, functions);
  return WriteFile(o.html, std::span(reinterpret_cast<const uint8_t*>(page.data()), page.size()));
}

// The model as one page: as it is, or as a pass left it.
absl::Status WriteHtml(const Options& o, const std::shared_ptr<const Model>& model) {
  const std::string name = std::filesystem::path(o.model).filename().string();
  if (o.pass == "all")
    return InvalidArgument("--html shows the graph at one point: give --pass NAME, not all");
  if (o.pass.empty()) {
    std::vector<const ir::Function*> functions;
    for (const auto& f : model->module().functions()) functions.push_back(f.get());
    return WritePage(o, *model, name, functions);
  }
  absl::Status written = absl::OkStatus();
  FORGE_RETURN_IF_ERROR(RunPasses(o, model, [&](std::string_view pass, const ir::Function& f) {
    const ir::Function* functions[] = {&f};
    if (pass == o.pass)
      written =
          WritePage(o, *model, fmt::format("{} after {} on {}", name, pass, o.device), functions);
  }));
  return written;
}

// In SPIR-V's assembly language, with names; or why there is none.
std::string Disassembled(const std::vector<uint8_t>& spirv) {
  std::vector<uint32_t> words(spirv.size() / sizeof(uint32_t));
  std::memcpy(words.data(), spirv.data(), words.size() * sizeof(uint32_t));
  spvtools::SpirvTools tools(SPV_ENV_UNIVERSAL_1_6);
  std::string text, error;
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&,
                               const char* message) { error = message; });
  const uint32_t how = SPV_BINARY_TO_TEXT_OPTION_NO_HEADER | SPV_BINARY_TO_TEXT_OPTION_INDENT |
                       SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES;
  if (tools.Disassemble(words, &text, how)) return text;
  return fmt::format("{} bytes (written by forge-run --dump) that {} cannot read: {}\n",
                     spirv.size(), spvSoftwareVersionString(), error);
}

absl::Status PrintKernel(const Options& o, std::shared_ptr<const Model> model) {
  FORGE_ASSIGN_OR_RETURN(auto dims, ParseDims(o.dims));
  FORGE_ASSIGN_OR_RETURN(DeviceRef device, OpenDevice(o.device, {.statistics = o.stats}));
  SessionOptions options;
  options.dims = dims;
  options.compile_only = true;  // devices that only compile have no memory for weights
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                         Session::Create(std::move(model), device, options));
  FORGE_RETURN_IF_ERROR(session->Bind(dims));
  const auto steps = session->executable()->steps();
  if (o.kernel >= static_cast<int>(steps.size()))
    return InvalidArgument("there is no step {}; the last is {}", o.kernel, steps.size() - 1);
  const StepInfo& step = steps[o.kernel];
  std::cout << Bold(fmt::format("step {}: {}", o.kernel, step.kernel))
            << fmt::format("\n{}\n{}\n", step.label, step.types);
  const ProgramRef& p = session->executable()->programs()[o.kernel];
  for (const Artifact& a : p->artifacts()) {
    const bool binary = a.name.ends_with(".spv");
    const std::string text(a.content.begin(), a.content.end());
    std::cout << a.name << ":\n" << (binary ? Disassembled(a.content) : text) << "\n";
  }
  if (!o.stats) return absl::OkStatus();
  Table table({"kernel", "statistic", "value"});
  for (const KernelStatistic& s : p->statistics())
    table.Add({s.kernel, s.name, fmt::format("{}", s.value)});
  std::cout << table.Text();
  return absl::OkStatus();
}

absl::Status Run(const Options& o, bool json) {
  if (o.verify) {
    FORGE_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module,
                           LoadModel(o.model, {.onnx = {}, .model = {.verify_weights = true}}));
    FORGE_RETURN_IF_ERROR(ir::Verify(*module));
    std::cout << (json ? "{\"verified\": true}\n" : o.model + ": graph and weights are whole\n");
    return absl::OkStatus();
  }
  FORGE_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model, Model::Load(o.model));
  if (o.kernel >= 0) return PrintKernel(o, model);
  if (!o.html.empty()) return WriteHtml(o, model);
  if (!o.pass.empty()) return PrintPasses(o, model, json);
  if (json)
    std::cout << SummaryJson(model->module())
                     .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  else if (o.text)
    std::cout << ir::ToText(model->module());
  else if (o.weights)
    PrintWeights(model->module());
  else
    PrintSummary(o.model, model->module());
  return absl::OkStatus();
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool("forge-inspect",
            "Shows what is in a model, what passes make of it, and the kernels of its steps.",
            {"forge-inspect model.bin", "forge-inspect model.bin --pass fuse --device vulkan",
             "forge-inspect model.bin --html model.html",
             "forge-inspect model.bin --kernel 3 --device vulkan --dim N=1 --stats"});
  tool.AddJson();
  Options o;
  tool.Argument("model", o.model, "model.bin or .onnx");
  tool.Option("--pass NAME", o.pass,
              "What this pass did, or each of all, as a diff of the text form; with --text the "
              "whole function after it");
  tool.Option("--device NAME", o.device, "Whose passes and kernels");
  tool.List("--dim SYMBOL=N", o.dims, "SYMBOL=N binds a dynamic dimension");
  tool.Option("--kernel STEP", o.kernel, {0, INT_MAX}, "Show what runs at this step of the plan");
  tool.Flag("--stats", o.stats, "With --kernel: what the driver's compiler says of it");
  tool.Option("--html FILE", o.html,
              "Write the graph as a page for a browser; with --pass as that pass leaves it");
  tool.Flag("--text", o.text, "The whole model as text");
  tool.Flag("--weights", o.weights, "Every variable with type and size");
  tool.Flag("--verify", o.verify, "Check the graph and the checksums of all weights");
  return tool.Run(argc, argv, [&] { return Run(o, tool.json()); });
}
