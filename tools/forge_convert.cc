// SPDX-License-Identifier: Apache-2.0
// forge-convert: a model of another format becomes model.bin.
#include <iostream>
#include <nlohmann/json.hpp>

#include "formats/load.h"
#include "formats/model_bin.h"
#include "formats/onnx.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string in, out;
  bool report = false, external = false;
  std::vector<std::string> shapes;
};

absl::Status PrintOperators(const Options& o, bool json) {
  FORGE_ASSIGN_OR_RETURN(std::vector<OnnxOperatorUse> uses, ListOnnxOperators(o.in));
  if (json) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& u : uses)
      out.push_back({{"domain", u.domain},
                     {"operator", u.name},
                     {"opset", u.opset},
                     {"since", u.since},
                     {"count", u.count},
                     {"first_node", u.first_node},
                     {"supported", u.since != 0}});
    std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
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

absl::StatusOr<OnnxOptions> ParseShapes(const std::vector<std::string>& shapes) {
  OnnxOptions options;
  for (const std::string& s : shapes) {
    const size_t eq = s.rfind('=');
    if (eq == s.npos || eq == 0) return InvalidArgument("'{}' is not NAME=1,3,H,W", s);
    std::vector<std::string>& dims = options.shapes[s.substr(0, eq)];
    for (size_t at = eq + 1; at <= s.size();) {
      const size_t end = std::min(s.find(',', at), s.size());
      dims.push_back(s.substr(at, end - at));
      at = end + 1;
    }
  }
  return options;
}

absl::Status Run(const Options& o, bool json) {
  if (o.report) return PrintOperators(o, json);
  if (o.out.empty()) return InvalidArgument("where to? give -o OUT.bin");
  FORGE_ASSIGN_OR_RETURN(OnnxOptions options, ParseShapes(o.shapes));
  Progress progress;
  options.progress = [&](size_t done, size_t total) { progress("converting nodes", done, total); };
  std::unique_ptr<ir::Module> module;
  if (options.shapes.empty()) {
    FORGE_ASSIGN_OR_RETURN(module, LoadModel(o.in, {.onnx = options, .model = {}}));
  } else {
    FORGE_ASSIGN_OR_RETURN(module, ImportOnnx(o.in, options));
  }
  const auto written = [&](uint64_t done, uint64_t total) {
    progress("writing MiB", done >> 20, total >> 20);
  };
  FORGE_RETURN_IF_ERROR(
      WriteModel(*module, o.out, {.external_weights = o.external, .progress = written}));
  size_t nodes = 0, bytes = 0;
  for (const auto& f : module->functions()) nodes += f->nodes().size();
  for (const auto& v : module->variables()) bytes += v->init ? v->init->bytes.size() : 0;
  if (json) {
    std::cout << nlohmann::json{{"file", o.out}, {"nodes", nodes}, {"weight_bytes", bytes}}.dump(2)
              << "\n";
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
  tool.Argument("in", o.in, "The model: .onnx or model.bin");
  tool.Option("-o,--out OUT.bin", o.out, "The model.bin to write");
  tool.Flag("--opset-report", o.report, "List the model's operators and whether each is supported");
  tool.List("--shape NAME=DIMS", o.shapes,
            "NAME=1,3,H,W: numbers, or names of dimensions that stay open");
  tool.Flag("--external-weights", o.external, "Put the weights into OUT.bin.weights beside it");
  return tool.Run(argc, argv, [&] { return Run(o, tool.json()); });
}
