// SPDX-License-Identifier: Apache-2.0
// forge-parity: the same answers everywhere, shown for every pair of devices.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "ir/type/precision.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "runtime/plan/executable.h"
#include "runtime/report.h"
#include "tools/parity/compiler_statistics.h"
#include "tools/parity/op_parity.h"
#include "tools/parity/reduce_model.h"
#include "tools/support/tensor_io.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string model, filter, stats, dump, reduce, precision = "exact";
  std::vector<std::string> devices, inputs, dims, shapes;
  Presentation presentation;
  bool compile_only = false, show_stats = false;
  int choices = 0;
  ir::Precision of_f32;  // `precision`
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
  FORGE_RETURN_IF_ERROR(FileNames(ports).status());
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
    return NotFound("{}: contains no file with the name of an input", folder.string());
  std::sort(pictures.begin(), pictures.end());
  for (const std::string& p : pictures) arguments.push_back(ports[0].name + "=" + p);
  return arguments;
}

// The inputs: what --inputs says, `random:SEED` or a folder standing for all.
absl::StatusOr<std::vector<NamedTensor>> Inputs(const Options& o, const Session& s,
                                                const Model& model, const DimMap& dims) {
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

Against AgainstOf(const Candidate& c) {
  return c.device->info().backend == "reference" ? Against::kReference : Against::kDevice;
}

absl::Status ComparePairs(const std::vector<Candidate>& devices, const ir::Precision& precision,
                          Tool& tool) {
  Table table({"device", "against", "worst output", "relative error", "largest difference",
               "classes", "verdict"});
  nlohmann::json pairs = nlohmann::json::array();
  int breaches = 0;
  for (size_t a = 0; a < devices.size(); ++a) {
    for (size_t b = a + 1; b < devices.size(); ++b) {
      FORGE_ASSIGN_OR_RETURN(Comparison c, Compare(devices[b].results, devices[a].results,
                                                   AgainstOf(devices[a]), precision));
      const OutputDifference* w = c.worst();
      breaches += !c.within();
      pairs.push_back(PairJson(devices[a], devices[b], c));
      if (w)
        table.Add({devices[b].name, devices[a].name, w->output, fmt::format("{:.2e}", w->rel_error),
                   fmt::format("{:.2e}", w->max_abs), w->same_classes ? "equal" : "differ",
                   c.within() ? "agree" : "DIFFER"});
    }
  }
  const size_t all = pairs.size();
  if (tool.json())
    tool.SetResult(std::move(pairs));
  else
    std::cout << table.Text();
  if (breaches) return Internal("{} of {} pairs of devices differ beyond the bound", breaches, all);
  return absl::OkStatus();
}

absl::Status CompileOnly(const Options& o, std::vector<Candidate>& devices, const DimMap& dims,
                         Tool& tool) {
  Table table({"device", "name", "steps", "kernels", "statistics"});
  nlohmann::json out = nlohmann::json::array();
  CompilerStatistics statistics;
  for (Candidate& c : devices) {
    FORGE_RETURN_IF_ERROR(CheckBound(c.session->inputs(), dims));
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
  if (tool.json())
    tool.SetResult(std::move(out));
  else
    std::cout << table.Text();
  return statistics.ShowOrWrite(o.show_stats && !tool.json(), o.stats);
}

// errors: an option that has no part in what is asked for
absl::Status CheckOptions(const Options& o, const Tool& tool) {
  if (o.model == "ops" && o.compile_only)
    return tool.Only("ops with --compile-only",
                     {"--device", "--filter", "--compile-only", "--stats", "--choices", "--dump"});
  if (o.model == "ops") return tool.Only("ops", {"--device", "--filter"});
  if (o.compile_only)
    return tool.Only("a model with --compile-only", {"--device", "--dim", "--shape", "--precision",
                                                     "--compile-only", "--stats", "--dump"});
  return tool.Only("a model", {"--device", "--dim", "--shape", "--precision", "--inputs",
                               "--preprocess", "--reduce"});
}

absl::Status Reduce(const Options& o, const Model& model, std::vector<Candidate>& devices,
                    const DimMap& dims, Tool& tool) {
  if (devices.size() != 2)
    return InvalidArgument("--reduce compares two devices: give --device reference,OTHER");
  FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> inputs,
                         Inputs(o, *devices[0].session, model, dims));
  Progress progress;
  const ReduceRequest request{.model = model.module(),
                              .inputs = inputs,
                              .devices = {devices[0].device, devices[1].device},
                              .against = AgainstOf(devices[0]),
                              .precision = o.of_f32,
                              .progress = [&](size_t left, size_t all) {
                                if (!tool.json()) progress("nodes taken out", all - left, all);
                              }};
  FORGE_ASSIGN_OR_RETURN(const ReducedModel reduced, ReduceModel(request));
  FORGE_ASSIGN_OR_RETURN(const std::filesystem::path folder, WriteReduced(reduced, o.reduce));
  std::string difference = reduced.difference;
  if (tool.json())
    tool.SetResult({{"file", o.reduce},
                    {"inputs", folder.string()},
                    {"nodes", reduced.nodes},
                    {"nodes_before", reduced.nodes_before},
                    {"tried", reduced.tried},
                    {"difference", difference},
                    {"text", ir::ToText(*reduced.module)}});
  else
    std::cout << fmt::format("{}: {} of {} nodes, after {} trials; its inputs are in {}\n{}\n{}",
                             o.reduce, reduced.nodes, reduced.nodes_before, reduced.tried,
                             folder.string(), difference, ir::ToText(*reduced.module));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Candidate>> OpenAll(const Options& o,
                                               const std::shared_ptr<const Model>& model,
                                               const DimMap& dims, Progress* progress) {
  std::vector<Candidate> devices;
  for (const std::string& name : o.devices) {
    Candidate c{.name = name, .device = nullptr, .session = nullptr, .results = {}};
    FORGE_ASSIGN_OR_RETURN(c.device, OpenDevice(name, {.statistics = o.compile_only}));
    SessionOptions options;
    options.dims = dims;
    options.precision = PrecisionBeside(o.of_f32, *c.device);
    options.debug.compile_only = o.compile_only;
    if (progress != nullptr)
      options.progress = [=](std::string_view what, size_t done, size_t total) {
        (*progress)(fmt::format("{}: {}", name, what), done, total);
      };
    auto session = Session::Create(model, c.device, options);
    if (!session.ok()) return Annotate(session.status(), name);
    c.session = *std::move(session);
    devices.push_back(std::move(c));
  }
  return devices;
}

absl::Status Run(Options o, Tool& tool) {
  FORGE_RETURN_IF_ERROR(CheckOptions(o, tool));
  FORGE_ASSIGN_OR_RETURN(o.of_f32, ir::ParsePrecision(o.precision));
  if (o.devices.empty()) o.devices = AllDevices();
  if (o.inputs.empty()) o.inputs = {"random:1"};
  if (o.model == "ops")
    return RunOpParity({.devices = o.devices,
                        .filter = o.filter,
                        .compile_only = o.compile_only,
                        .show_statistics = o.show_stats,
                        .statistics = o.stats,
                        .dump = o.dump,
                        .choices = o.choices},
                       tool);
  FORGE_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model, Model::Load(o.model));
  const ir::Function* main = model->module().Find("main");
  if (main == nullptr) return InvalidArgument("{} has no function 'main'", o.model);
  FORGE_ASSIGN_OR_RETURN(const DimMap dims, DimsOf(o.dims, o.shapes, *main));
  Progress progress;
  FORGE_ASSIGN_OR_RETURN(std::vector<Candidate> devices,
                         OpenAll(o, model, dims, tool.json() ? nullptr : &progress));
  if (o.compile_only) return CompileOnly(o, devices, dims, tool);
  if (!o.reduce.empty()) return Reduce(o, *model, devices, dims, tool);
  FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> inputs,
                         Inputs(o, *devices[0].session, *model, dims));
  for (Candidate& c : devices) {
    auto results = c.session->Run(inputs);
    if (!results.ok()) return Annotate(results.status(), c.name);
    c.results = *std::move(results);
  }
  return ComparePairs(devices, o.of_f32, tool);
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool(
      "forge-parity",
      "Runs a model, or the cases of all ops, on several devices and compares each pair.",
      {"forge-parity model.bin --inputs random:1 --dim N=4",
       "forge-parity model.bin --inputs pictures", "forge-parity ops --device cpu,vulkan",
       "forge-parity model.bin --device reference,vulkan --dim N=1 --reduce small.bin",
       "forge-parity model.bin --device vulkan --dim N=1 --compile-only --stats kernels.tsv"});
  tool.AddJson();
  Options o;
  tool.Argument("model", o.model, "model.bin, .onnx, or ops");
  tool.Devices(o.devices, "Devices to compare; default: all, the reference first");
  tool.List("--inputs,--input WHAT", o.inputs,
            "random:SEED, a folder with a file for each input or with pictures, or NAME=FILE as in "
            "forge-run");
  tool.Option("--preprocess SPEC", o.presentation.preprocess, "For pictures; as in forge-run");
  tool.List("--dim SYMBOL=N", o.dims, "Bind an open dimension");
  tool.List("--shape NAME=DIMS", o.shapes,
            "Bind the open dimensions of an input, as in NAME=1,3,480,640");
  tool.Option(
      "--precision NAME", o.precision,
      "Of products and convolutions on all devices but the reference: exact, f16, bf16 or fast");
  tool.Option("--reduce OUT.bin", o.reduce,
              "Write the smallest part of the model on which two devices differ; its inputs are "
              "written to OUT.bin.inputs");
  tool.Option("--filter REGEX", o.filter, "With ops: select the cases whose text matches");
  tool.Flag("--compile-only", o.compile_only, "Compile every pipeline and run nothing");
  tool.OptionalValue("--stats FILE", o.show_stats, o.stats,
                     "With --compile-only: show the statistics of the drivers for each kernel, or "
                     "write them to FILE");
  tool.Option("--choices N", o.choices, {1, 1000},
              "With ops and --compile-only: compile up to N choices of each case");
  tool.Option("--dump DIR", o.dump,
              "With --compile-only: write every kernel to DIR/DEVICE, kernels of ops by case");
  for (const char* option : {"--stats", "--choices", "--dump"})
    tool.Needs(option, {"--compile-only"});
  return tool.Run(argc, argv, [&] { return Run(o, tool); });
}
