// SPDX-License-Identifier: Apache-2.0
// forge-convert: a model of another format becomes model.bin.
#include <iostream>
#include <nlohmann/json.hpp>

#include "formats/load.h"
#include "formats/model_bin/model_bin.h"
#include "formats/onnx/importer.h"
#include "tools/support/dims.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string in, out;
  bool report = false, external = false;
  std::vector<std::string> shapes;
};

absl::Status PrintOperators(const Options& o, Tool& tool) {
  FORGE_ASSIGN_OR_RETURN(std::vector<OnnxOperatorUse> uses, ListOnnxOperators(o.in));
  if (tool.json()) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& u : uses)
      out.push_back({{"domain", u.domain},
                     {"operator", u.name},
                     {"opset", u.opset},
                     {"since", u.since},
                     {"count", u.count},
                     {"first_node", u.first_node},
                     {"supported", u.since != 0}});
    tool.SetResult(std::move(out));
    return absl::OkStatus();
  }
  Table table({"operator", "opset", "imported as", "nodes", "first node"});
  for (const auto& u : uses)
    table.Add({u.domain.empty() ? u.name : u.domain + "." + u.name, std::to_string(u.opset),
               u.since ? "version " + std::to_string(u.since) : "NOT SUPPORTED",
               std::to_string(u.count), u.first_node});
  std::cout << table.Text();
  return absl::OkStatus();
}

absl::Status Run(const Options& o, Tool& tool) {
  if (o.report) {
    FORGE_RETURN_IF_ERROR(tool.Only("--opset-report", {"--opset-report"}));
    return PrintOperators(o, tool);
  }
  if (o.out.empty()) return InvalidArgument("no output file: give -o OUT.bin");
  OnnxOptions options;
  FORGE_ASSIGN_OR_RETURN(options.shapes, ParseShapes(o.shapes));
  Progress progress;
  options.progress = [&](size_t done, size_t total) { progress("converting nodes", done, total); };
  FORGE_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Module> module,
                         LoadModel(o.in, {.onnx = options, .model = {}}));
  const auto written = [&](uint64_t done, uint64_t total) {
    progress("writing MiB", done >> 20, total >> 20);
  };
  FORGE_RETURN_IF_ERROR(
      WriteModel(*module, o.out, {.external_weights = o.external, .progress = written}));
  size_t nodes = 0, bytes = 0;
  for (const auto& f : module->functions()) nodes += f->nodes().size();
  for (const auto& v : module->variables()) bytes += v->init ? v->init->bytes.size() : 0;
  if (tool.json()) {
    tool.SetResult({{"file", o.out}, {"nodes", nodes}, {"weight_bytes", bytes}});
  } else {
    std::cout << fmt::format("{}: {} nodes, {} of weights\n", o.out, nodes, Bytes(bytes));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool("forge-convert", "Converts a model to model.bin.",
            {"forge-convert net.onnx -o net.bin", "forge-convert net.onnx --opset-report"});
  tool.AddJson();
  Options o;
  tool.Argument("in", o.in, "The model to convert: .onnx or model.bin");
  tool.Option("-o,--out OUT.bin", o.out, "The model.bin to write");
  tool.Flag("--opset-report", o.report,
            "List the operators of the model and whether each is supported");
  tool.List("--shape NAME=DIMS", o.shapes,
            "Set the shape of an input, as in NAME=1,3,H,W; a name leaves a dimension open");
  tool.Flag("--external-weights", o.external, "Write the weights to OUT.bin.weights");
  return tool.Run(argc, argv, [&] { return Run(o, tool); });
}
