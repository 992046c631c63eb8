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
#include "formats/model_bin/model_bin.h"
#include "ir/passes/passes.h"
#include "ir/type/precision.h"
#include "runtime/backends.h"
#include "runtime/plan/executable.h"
#include "runtime/plan/lower.h"
#include "runtime/session.h"
#include "tools/page/function_json.h"
#include "tools/page/model_page.h"
#include "tools/page/pass_report.h"
#include "tools/page/trace_times.h"
#include "tools/support/dims.h"
#include "tools/support/document.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string model, pass, html, profile, stats_file, device = "auto", precision = "exact";
  std::vector<std::string> dims, shapes;
  int kernel = -1;
  bool text = false, weights = false, verify = false, stats = false, no_fuse = false;
};

absl::StatusOr<DimMap> DimsFor(const Options& o, const Model& model) {
  const ir::Function* main = model.module().Find("main");
  if (main == nullptr) return InvalidArgument("{} has no function 'main'", o.model);
  return DimsOf(o.dims, o.shapes, *main);
}

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

nlohmann::json WeightsJson(const ir::Module& m) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& v : m.variables())
    out.push_back({{"name", v->name},
                   {"role", std::string(RoleName(v->role))},
                   {"type", v->type.ToText()},
                   {"bytes", v->init ? nlohmann::json(v->init->bytes.size()) : nlohmann::json()}});
  return out;
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
  nlohmann::json functions = nlohmann::json::array(), metadata = nlohmann::json::object();
  for (const auto& f : m.functions()) functions.push_back(FunctionJson(*f));
  for (const auto& [key, value] : m.metadata) metadata[key] = value;
  return {{"functions", functions}, {"variables", WeightsJson(m)}, {"metadata", metadata}};
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
absl::StatusOr<std::unique_ptr<Session>> RunPasses(
    const Options& o, const std::shared_ptr<const Model>& model,
    std::function<void(std::string_view, const ir::Function&)> observe) {
  const auto names = PassNames();
  if (o.pass != "all" && std::find(names.begin(), names.end(), o.pass) == names.end())
    return InvalidArgument("unknown pass '{}'; the passes are {}, and all for each of them", o.pass,
                           fmt::join(names, ", "));
  FORGE_ASSIGN_OR_RETURN(const DimMap dims, DimsFor(o, *model));
  FORGE_ASSIGN_OR_RETURN(DeviceRef device, OpenDevice(o.device, {}));
  SessionOptions options;
  options.dims = dims;
  FORGE_ASSIGN_OR_RETURN(options.precision, ir::ParsePrecision(o.precision));
  options.debug.compile_only = true;
  options.debug.fuse = !o.no_fuse;
  options.debug.observe = std::move(observe);
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(model, device, options));
  if (dims.empty() && o.pass != "bind" && o.pass != "split" && o.pass != "encode" &&
      o.pass != "pack")
    return session;
  FORGE_RETURN_IF_ERROR(CheckBound(session->inputs(), dims));
  FORGE_RETURN_IF_ERROR(session->Bind(dims));
  return session;
}

// What a pass, or each, did to the model; with --text, the whole function after it.
absl::Status PrintPasses(const Options& o, const std::shared_ptr<const Model>& model, Tool& tool) {
  PassReport report;
  nlohmann::json changes = nlohmann::json::array();
  for (const auto& f : model->module().functions()) report.Begin(*f);
  const auto observe = [&](std::string_view pass, const ir::Function& f) {
    const PassReport::Change change = report.After(f);
    if (o.pass != "all" && o.pass != pass) return;
    if (tool.json()) {
      changes.push_back(ChangeJson(pass, f, change));
      if (o.text) changes.back()["text"] = ir::ToText(f);
    } else if (o.text) {
      std::cout << Bold(SummaryOf(pass, f.name(), change)) << "\n" << ir::ToText(f) << "\n";
    } else {
      PrintChange(pass, f, change);
    }
  };
  FORGE_RETURN_IF_ERROR(RunPasses(o, model, observe).status());
  if (tool.json()) tool.SetResult(std::move(changes));
  return absl::OkStatus();
}

// A function with numbers for its dimensions, and the module that holds its bodies.
struct BoundCopy {
  std::unique_ptr<ir::Module> module;
  std::unique_ptr<ir::Function> function;
};

absl::StatusOr<BoundCopy> BindCopy(const ir::Function& f, const DimMap& dims) {
  BoundCopy copy{std::make_unique<ir::Module>(f.module()), nullptr};
  ir::Bindings bindings;
  for (const auto& [name, n] : dims) {
    const ir::SymbolRef symbol = f.module()->FindSymbol(name);
    if (!symbol) return InvalidArgument("the model has no dimension '{}'", name);
    bindings[symbol] = n;
  }
  copy.function = std::make_unique<ir::Function>(f.name(), copy.module.get());
  FORGE_RETURN_IF_ERROR(ir::Bind(*copy.module, f, *copy.function, bindings));
  return copy;
}

// The page of the plan: the graph as it runs, with kernels, and with times where there are some.
absl::Status WritePlanPage(const Options& o, const Model& model, const Session& session,
                           const std::string& title) {
  const Executable& e = *session.executable();
  ModelPage page{.title = title, .metadata = model.module().metadata, .steps = {}};
  for (size_t i = 0; i < e.steps().size(); ++i)
    if (const ir::Node* node = e.step_nodes()[i])
      page.steps[node] = {e.steps()[i].number, e.steps()[i].kernel, -1};
  if (!o.profile.empty()) FORGE_RETURN_IF_ERROR(AddTimes(o.profile, e, page.steps));
  const ir::Function* functions[] = {&e.function()};
  return WriteText(o.html, ModelPageHtml(page, functions));
}

// The model as one page: as it is, or as a pass left it.
absl::Status WriteHtml(const Options& options, const std::shared_ptr<const Model>& model,
                       Tool& tool) {
  Options o = options;
  if (o.pass == "all")
    return InvalidArgument(
        "--html shows the graph after one pass: give --pass NAME instead of all");
  const bool of_device = tool.Given("--device") || o.no_fuse || !o.profile.empty();
  if (of_device && o.pass.empty()) o.pass = "pack";
  if (!o.profile.empty() && o.pass != "pack")
    return InvalidArgument("--profile needs the graph that runs: give --pass pack, or no --pass");
  if (tool.json()) tool.SetResult({{"file", o.html}});
  const std::string name = std::filesystem::path(o.model).filename().string();
  FORGE_ASSIGN_OR_RETURN(const DimMap dims, DimsFor(o, *model));
  ModelPage page{.title = name, .metadata = model->module().metadata, .steps = {}};
  if (o.pass.empty()) {
    std::vector<const ir::Function*> functions;
    for (const auto& f : model->module().functions()) functions.push_back(f.get());
    if (dims.empty()) return WriteText(o.html, ModelPageHtml(page, functions));
    FORGE_ASSIGN_OR_RETURN(const BoundCopy bound, BindCopy(*functions[0], dims));
    functions[0] = bound.function.get();
    return WriteText(o.html, ModelPageHtml(page, functions));
  }
  absl::Status written = absl::OkStatus();
  page.title = fmt::format("{} after {} on {}", name, o.pass, o.device);
  const auto observe = [&](std::string_view pass, const ir::Function& f) {
    if (pass != o.pass || pass == "pack" || f.name() == "load") return;
    const ir::Function* functions[] = {&f};
    BoundCopy bound;
    if (!dims.empty() && pass != "split" && pass != "encode") {
      auto copy = BindCopy(f, dims);
      written = copy.status();
      if (!copy.ok()) return;
      bound = *std::move(copy);
      functions[0] = bound.function.get();
    }
    written = WriteText(o.html, ModelPageHtml(page, functions));
  };
  FORGE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, RunPasses(o, model, observe));
  return o.pass == "pack" ? WritePlanPage(o, *model, *session, page.title) : written;
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

// One step of the plan: what runs there.
struct StepKernel {
  StepInfo info;
  ProgramRef program;

  nlohmann::json Json() const {
    nlohmann::json artifacts = nlohmann::json::array(), statistics = nlohmann::json::array();
    for (const Artifact& a : program->artifacts())
      artifacts.push_back({{"name", a.name}, {"text", Text(a)}});
    for (const KernelStatistic& s : program->statistics())
      statistics.push_back({{"kernel", s.kernel}, {"name", s.name}, {"value", s.value}});
    return {{"step", info.number}, {"kernel", info.kernel},  {"label", info.label},
            {"types", info.types}, {"artifacts", artifacts}, {"statistics", statistics}};
  }
  void Print(bool with_statistics) const {
    std::cout << Bold(fmt::format("step {}: {}", info.number, info.kernel))
              << fmt::format("\n{}\n{}\n", info.label, info.types);
    for (const Artifact& a : program->artifacts()) std::cout << a.name << ":\n" << Text(a) << "\n";
    if (!with_statistics) return;
    Table table({"kernel", "statistic", "value"});
    for (const KernelStatistic& s : program->statistics())
      table.Add({s.kernel, s.name, fmt::format("{}", s.value)});
    std::cout << table.Text();
  }

 private:
  static std::string Text(const Artifact& a) {
    if (a.name.ends_with(".spv")) return Disassembled(a.content);
    return {a.content.begin(), a.content.end()};
  }
};

absl::Status ShowKernel(const Options& o, std::shared_ptr<const Model> model, Tool& tool) {
  FORGE_ASSIGN_OR_RETURN(const DimMap dims, DimsFor(o, *model));
  FORGE_ASSIGN_OR_RETURN(DeviceRef device, OpenDevice(o.device, {.statistics = o.stats}));
  SessionOptions options;
  options.dims = dims;
  FORGE_ASSIGN_OR_RETURN(options.precision, ir::ParsePrecision(o.precision));
  options.debug.compile_only = true;  // devices that only compile have no memory for weights
  options.debug.fuse = !o.no_fuse;
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                         Session::Create(std::move(model), device, options));
  FORGE_RETURN_IF_ERROR(CheckBound(session->inputs(), dims));
  FORGE_RETURN_IF_ERROR(session->Bind(dims));
  const Executable& e = *session->executable();
  const int count = static_cast<int>(e.programs().size());
  if (o.kernel >= count)
    return InvalidArgument("there is no step {}; the last step is {}", o.kernel, count - 1);
  const auto info = std::find_if(e.steps().begin(), e.steps().end(),
                                 [&](const StepInfo& s) { return s.number == o.kernel; });
  const StepKernel step{*info, e.programs()[o.kernel]};
  if (tool.json())
    tool.SetResult(step.Json());
  else
    step.Print(o.stats && o.stats_file.empty());
  if (o.stats_file.empty()) return absl::OkStatus();
  std::string rows = "kernel\tstatistic\tvalue\n";
  for (const KernelStatistic& s : step.program->statistics())
    rows += fmt::format("{}\t{}\t{}\n", s.kernel, s.name, s.value);
  return WriteText(o.stats_file, rows);
}

// errors: an option that has no part in what is asked for
absl::Status CheckOptions(const Options& o, const Tool& tool) {
  if (o.verify) return tool.Only("--verify", {"--verify"});
  if (o.kernel >= 0)
    return tool.Only("--kernel", {"--kernel", "--device", "--dim", "--shape", "--precision",
                                  "--no-fuse", "--stats"});
  if (!o.html.empty())
    return tool.Only("--html", {"--html", "--pass", "--device", "--dim", "--shape", "--precision",
                                "--no-fuse", "--profile"});
  if (!o.pass.empty())
    return tool.Only(
        "--pass", {"--pass", "--device", "--dim", "--shape", "--precision", "--no-fuse", "--text"});
  if (o.weights) return tool.Only("--weights", {"--weights"});
  return tool.Only("the model as it is", {"--text"});
}

absl::Status Verify(const Options& o, Tool& tool) {
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module,
                         LoadModel(o.model, {.onnx = {}, .model = {.verify_weights = true}}));
  FORGE_RETURN_IF_ERROR(ir::Verify(*module));
  if (tool.json())
    tool.SetResult({{"verified", true}});
  else
    std::cout << o.model << ": graph and weights are whole\n";
  return absl::OkStatus();
}

absl::Status Run(const Options& o, Tool& tool) {
  FORGE_RETURN_IF_ERROR(CheckOptions(o, tool));
  if (o.verify) return Verify(o, tool);
  FORGE_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model, Model::Load(o.model));
  const ir::Module& m = model->module();
  if (o.kernel >= 0) return ShowKernel(o, model, tool);
  if (!o.html.empty()) return WriteHtml(o, model, tool);
  if (!o.pass.empty()) return PrintPasses(o, model, tool);
  if (tool.json()) {
    nlohmann::json out = o.weights ? WeightsJson(m) : SummaryJson(m);
    if (o.text) out["text"] = ir::ToText(m);
    tool.SetResult(std::move(out));
  } else if (o.text) {
    std::cout << ir::ToText(m);
  } else if (o.weights) {
    PrintWeights(m);
  } else {
    PrintSummary(o.model, m);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool("forge-inspect",
            "Shows a model, the effect of each pass on it, and the kernels of its steps.",
            {"forge-inspect model.bin", "forge-inspect model.bin --pass fuse --device vulkan",
             "forge-inspect model.bin --html model.html",
             "forge-inspect model.bin --html run.html --device vulkan --dim N=1 --profile t.json",
             "forge-inspect model.bin --kernel 3 --device vulkan --dim N=1 --stats"});
  tool.AddJson();
  Options o;
  tool.Argument("model", o.model, "model.bin or .onnx");
  tool.Option("--pass NAME", o.pass,
              "Show the effect of a pass, or of each pass for all, as a diff of the text form; "
              "with --text, show the whole function after the pass");
  tool.Device(o.device, "The device whose passes and kernels are shown");
  tool.List("--dim SYMBOL=N", o.dims, "Bind an open dimension");
  tool.List("--shape NAME=DIMS", o.shapes,
            "Bind the open dimensions of an input, as in NAME=1,3,480,640");
  tool.Option("--precision NAME", o.precision,
              "Of products and convolutions: exact, f16, bf16 or fast");
  tool.Flag("--no-fuse", o.no_fuse, "Do not fuse: each node is a separate step");
  tool.Option("--kernel STEP", o.kernel, {0, INT_MAX}, "Show the kernel of this step of the plan");
  tool.OptionalValue(
      "--stats FILE", o.stats, o.stats_file,
      "With --kernel: show the statistics of the driver's compiler, or write them to FILE");
  tool.Option("--html FILE", o.html,
              "Write the graph as an HTML page; with --device, the graph that runs there, with its "
              "kernels; with --pass, the graph after that pass");
  tool.Option("--profile FILE", o.profile,
              "With --html: show the times of a trace that forge-run --profile wrote");
  tool.Flag("--text", o.text, "Print the whole model as text");
  tool.Flag("--weights", o.weights, "List the variables with type and size");
  tool.Flag("--verify", o.verify, "Check the graph and the checksums of all weights");
  tool.Needs("--stats", {"--kernel"});
  tool.Needs("--profile", {"--html"});
  return tool.Run(argc, argv, [&] { return Run(o, tool); });
}
