// SPDX-License-Identifier: Apache-2.0
// forge-parity: the same answers everywhere, shown for every pair of devices.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "runtime/backends.h"
#include "runtime/compare.h"
#include "runtime/executable.h"
#include "runtime/report.h"
#include "tools/support/compiler_statistics.h"
#include "tools/support/dims.h"
#include "tools/support/op_parity.h"
#include "tools/support/tensor_io.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string model, filter, stats, dump;
  std::vector<std::string> devices, inputs, dims;
  Presentation presentation;
  bool compile_only = false;
  int choices = 0;
};

// Every device that can be used, one name each; the reference first.
std::vector<std::string> AllDevices() {
  std::vector<std::string> names = {"reference"};
  for (const BackendDevices& b : ListDevices())
    for (const DeviceInfo& d : b.devices)
      if (b.backend != "reference" && d.usable) names.push_back(d.id);
  return names;
}

struct Candidate {
  std::string name;
  DeviceRef device;
  std::unique_ptr<Session> session;
  std::vector<NamedTensor> results;
};

// What a folder holds for the inputs: NAME.npy and the like, or pictures for the only input there
// is.
absl::StatusOr<std::vector<std::string>> InputsIn(const std::filesystem::path& folder,
                                                  std::span<const Session::Port> ports) {
  std::vector<std::string> arguments, pictures;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path& file = entry.path();
    for (const Session::Port& port : ports)
      if (file.stem() == FileName(port.name)) arguments.push_back(port.name + "=" + file.string());
    const std::string kind = file.extension().string();
    if (kind == ".png" || kind == ".jpg" || kind == ".jpeg") pictures.push_back(file.string());
  }
  if (error) return NotFound("{}: {}", folder.string(), error.message());
  if (!arguments.empty()) return arguments;
  if (ports.size() != 1 || pictures.empty())
    return NotFound("{}: it holds no file named after an input", folder.string());
  std::sort(pictures.begin(), pictures.end());
  for (const std::string& p : pictures) arguments.push_back(ports[0].name + "=" + p);
  return arguments;
}

// The inputs: what --inputs says, `random:SEED` or a folder standing for all.
absl::StatusOr<std::vector<NamedTensor>> Inputs(const Options& o, const Session& s,
                                                const Model& model) {
  FORGE_ASSIGN_OR_RETURN(auto dims, ParseDims(o.dims));
  std::vector<std::string> arguments;
  for (const std::string& i : o.inputs) {
    if (std::error_code error; std::filesystem::is_directory(i, error)) {
      FORGE_ASSIGN_OR_RETURN(std::vector<std::string> files, InputsIn(i, s.inputs()));
      arguments.insert(arguments.end(), files.begin(), files.end());
      continue;
    }
    if (i != "random" && !i.starts_with("random:")) {
      arguments.push_back(i);
      continue;
    }
    for (const auto& port : s.inputs()) arguments.push_back(port.name + "=" + i);
  }
  return ReadInputs(arguments, s.inputs(), dims, model, o.presentation);
}

nlohmann::json PairJson(const Candidate& a, const Candidate& b, const Comparison& c) {
  const OutputDifference* worst = c.worst();
  return {{"a", a.name},
          {"b", b.name},
          {"output", worst ? worst->output : ""},
          {"rel_error", worst ? worst->rel_error : 0.0},
          {"max_abs", worst ? worst->max_abs : 0.0},
          {"same_classes", !worst || worst->same_classes},
          {"within", c.within()}};
}

absl::Status ComparePairs(const std::vector<Candidate>& devices, bool json) {
  Table table({"device", "against", "worst output", "relative error", "largest difference",
               "classes", "verdict"});
  nlohmann::json pairs = nlohmann::json::array();
  int breaches = 0;
  for (size_t a = 0; a < devices.size(); ++a) {
    for (size_t b = a + 1; b < devices.size(); ++b) {
      FORGE_ASSIGN_OR_RETURN(Comparison c, Compare(devices[b].results, devices[a].results));
      const OutputDifference* w = c.worst();
      breaches += !c.within();
      pairs.push_back(PairJson(devices[a], devices[b], c));
      if (w)
        table.Add({devices[b].name, devices[a].name, w->output, fmt::format("{:.2e}", w->rel_error),
                   fmt::format("{:.2e}", w->max_abs), w->same_classes ? "equal" : "differ",
                   c.within() ? "agree" : "DIFFER"});
    }
  }
  if (json)
    std::cout << pairs.dump(2) << "\n";
  else
    std::cout << table.Text();
  if (breaches)
    return Internal("{} of {} pairs of devices differ beyond the bound", breaches, pairs.size());
  return absl::OkStatus();
}

absl::Status CompileOnly(const Options& o, std::vector<Candidate>& devices, bool json) {
  FORGE_ASSIGN_OR_RETURN(auto dims, ParseDims(o.dims));
  Table table({"device", "name", "steps", "kernels", "statistics"});
  nlohmann::json out = nlohmann::json::array();
  CompilerStatistics statistics;
  for (Candidate& c : devices) {
    FORGE_RETURN_IF_ERROR(c.session->Bind(dims));
    const SessionStatistics n = c.session->statistics();
    if (!o.dump.empty())
      FORGE_RETURN_IF_ERROR(
          DumpArtifacts(*c.session, std::filesystem::path(o.dump) / FileName(c.name)));
    const std::string model = std::filesystem::path(o.model).stem().string();
    const size_t told = statistics.Add(*c.device, model, *c.session->executable());
    table.Add({c.name, c.device->info().name, std::to_string(n.steps),
               std::to_string(n.kernels_made), std::to_string(told)});
    out.push_back({{"device", c.name},
                   {"name", c.device->info().name},
                   {"steps", n.steps},
                   {"kernels", n.kernels_made}});
  }
  if (json)
    std::cout << out.dump(2) << "\n";
  else
    std::cout << table.Text();
  if (o.stats.empty()) return absl::OkStatus();
  return statistics.Write(o.stats);
}

absl::Status Run(Options o, bool json) {
  if (o.choices > 0 && (o.model != "ops" || !o.compile_only))
    return InvalidArgument("--choices goes with ops and --compile-only");
  if (o.devices.empty()) o.devices = AllDevices();
  if (o.inputs.empty()) o.inputs = {"random:1"};
  if (o.model == "ops")
    return RunOpParity({.devices = o.devices,
                        .filter = o.filter,
                        .compile_only = o.compile_only,
                        .statistics = o.stats,
                        .dump = o.dump,
                        .choices = o.choices,
                        .json = json});
  FORGE_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model, Model::Load(o.model));
  FORGE_ASSIGN_OR_RETURN(auto dims, ParseDims(o.dims));
  Progress progress;
  std::vector<Candidate> devices;
  for (const std::string& name : o.devices) {
    Candidate c{.name = name, .device = nullptr, .session = nullptr, .results = {}};
    FORGE_ASSIGN_OR_RETURN(c.device, OpenDevice(name, {.statistics = o.compile_only}));
    SessionOptions options;
    options.dims = dims;
    options.compile_only = o.compile_only;
    if (!json)
      options.progress = [&](std::string_view what, size_t done, size_t total) {
        progress(fmt::format("{}: {}", name, what), done, total);
      };
    auto session = Session::Create(model, c.device, options);
    if (!session.ok()) return Annotate(session.status(), name);
    c.session = *std::move(session);
    devices.push_back(std::move(c));
  }
  if (o.compile_only) return CompileOnly(o, devices, json);
  FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> inputs, Inputs(o, *devices[0].session, *model));
  for (Candidate& c : devices) {
    auto results = c.session->Run(inputs);
    if (!results.ok()) return Annotate(results.status(), c.name);
    c.results = *std::move(results);
  }
  return ComparePairs(devices, json);
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool(
      "forge-parity",
      "Runs a model, or every op's cases, on several devices and compares each pair.",
      {"forge-parity model.bin --inputs random:1 --dim N=4",
       "forge-parity model.bin --inputs pictures", "forge-parity ops --devices cpu,vulkan",
       "forge-parity model.bin --devices vulkan --dim N=1 --compile-only --stats kernels.tsv"});
  tool.AddJson();
  Options o;
  tool.Argument("model", o.model, "model.bin, .onnx, or ops");
  tool.CommaList("--devices A,B", o.devices,
                 "Comma-separated; default: all there are, the reference first");
  tool.List("--inputs,--input WHAT", o.inputs,
            "random:SEED, a folder with a file for each input or with pictures, or NAME=FILE as "
            "forge-run takes");
  tool.Option("--preprocess SPEC", o.presentation.preprocess, "For pictures, as forge-run");
  tool.List("--dim SYMBOL=N", o.dims, "SYMBOL=N binds a dynamic dimension");
  tool.Option("--filter REGEX", o.filter,
              "With ops: only cases whose text matches this regular expression");
  tool.Flag("--compile-only", o.compile_only, "Only build every pipeline");
  tool.Option("--stats FILE", o.stats,
              "With --compile-only: write the drivers' own statistics of each kernel");
  tool.Option("--choices N", o.choices, {1, 1000},
              "With ops and --compile-only: compile each case in up to N ways");
  tool.Option("--dump DIR", o.dump,
              "With --compile-only: write every kernel into DIR/DEVICE, those of ops by case");
  return tool.Run(argc, argv, [&] { return Run(o, tool.json()); });
}
