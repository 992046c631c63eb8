// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/importer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "base/platform.h"
#include "formats/onnx/functions.h"
#include "formats/onnx/graph.h"
#include "formats/onnx/input.h"
#include "formats/onnx/ops.h"
#include "formats/untrusted/refusal.h"

namespace forge {
namespace {

using namespace formats;  // NOLINT: the private half of this file

// Of bodies within bodies, each of which takes some stack. One is a graph of an attribute of a
// node; a model has a graph, in which a dimension lies five messages deeper.
constexpr int kMostBodies = 64, kMaxNesting = 2 + 3 * kMostBodies + 5;

absl::StatusOr<onnx::ModelProto> Parse(const Bytes& file) {
  if (file.size() > INT32_MAX)
    return DataLoss("{} bytes exceed the limit of protobuf; store the weights as external data",
                    file.size());
  google::protobuf::io::ArrayInputStream bytes(file.data(), static_cast<int>(file.size()));
  google::protobuf::io::CodedInputStream stream(&bytes);
  stream.SetRecursionLimit(kMaxNesting);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return DataLoss(
        "not an ONNX model, a damaged one, or one with bodies nested more than {} deep: parsing "
        "stops at byte {} of {}",
        kMostBodies, stream.CurrentPosition(), file.size());
  if (!model.has_ir_version() || !model.has_graph())
    return DataLoss("not an ONNX model: it has no {}", model.has_graph() ? "IR version" : "graph");
  if (model.ir_version() < 1 || model.ir_version() > kNewestIrVersion)
    return DataLoss("IR version {} is not supported; Forge reads versions 1 to {}",
                    model.ir_version(), kNewestIrVersion);
  return model;
}

absl::StatusOr<Opsets> OpsetsOf(const onnx::ModelProto& model) {
  Opsets out;
  for (const onnx::OperatorSetIdProto& set : model.opset_import())
    if (!out.emplace(NormalDomain(set.domain()), set.version()).second)
      return DataLoss("the opset of domain '{}' is given twice", set.domain());
  // Before IR version 3 there was one opset only.
  if (out.empty() && model.ir_version() < 3) out.emplace("", 1);
  const auto standard = out.find("");
  if (out.empty()) return DataLoss("it has no opset");
  if (standard == out.end()) return out;  // of operators of other domains alone
  if (standard->second < 1 || standard->second > kNewestOpset)
    return DataLoss("opset {} is not supported; Forge reads opsets 1 to {}", standard->second,
                    kNewestOpset);
  return out;
}

// ---- which operators ---------------------------------------------------------------------------

using Uses = std::map<std::pair<std::string, std::string>, OnnxOperatorUse>;

// Counts the operators of graphs, and once those of each function that they call.
class Counter {
 public:
  explicit Counter(const OnnxFunctions& functions) : functions_(functions) {}

  Uses Run(const onnx::GraphProto& graph, const Opsets& opsets) {
    Count(graph.node(), opsets);
    while (!called_.empty()) {
      const OnnxFunction* f = called_.back();
      called_.pop_back();
      Count(f->proto.node(), f->opsets.empty() ? opsets : f->opsets);
    }
    return std::move(uses_);
  }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  void Count(const Nodes& nodes, const Opsets& opsets) {
    for (const onnx::NodeProto& node : nodes) {
      if (const OnnxFunction* f = functions_.Find(node)) {
        if (seen_.insert(f).second) called_.push_back(f);
      } else {
        Count(node, opsets);
      }
      // Bodies nest no deeper than the parser let messages nest.
      for (const onnx::AttributeProto& a : node.attribute()) {
        if (a.has_g()) Count(a.g().node(), opsets);
        for (const onnx::GraphProto& g : a.graphs()) Count(g.node(), opsets);
      }
    }
  }

  void Count(const onnx::NodeProto& node, const Opsets& opsets) {
    const std::string domain(DomainOf(node));
    OnnxOperatorUse& use = uses_[{domain, node.op_type()}];
    if (use.count++ != 0) return;
    const auto opset = opsets.find(domain);
    use.domain = domain;
    use.name = node.op_type();
    use.opset = opset == opsets.end() ? 0 : opset->second;
    const OnnxOp* op = FindOnnxOp(domain, node.op_type(), use.opset);
    use.since = op == nullptr ? 0 : op->since;
    use.first_node = NameOfNode(node);
  }

  const OnnxFunctions& functions_;
  absl::flat_hash_set<const OnnxFunction*> seen_;
  std::vector<const OnnxFunction*> called_;
  Uses uses_;
};

absl::Status CheckSupported(const onnx::GraphProto& graph, const Opsets& opsets,
                            const OnnxFunctions& functions) {
  const Uses uses = Counter(functions).Run(graph, opsets);
  std::vector<std::string> missing;
  for (const auto& [key, use] : uses) {
    if (use.since != 0) continue;
    const std::string name = use.domain.empty() ? use.name : use.domain + "." + use.name;
    missing.push_back(fmt::format("{} (opset {}, {} {}, first '{}')", name, use.opset, use.count,
                                  use.count == 1 ? "node" : "nodes", use.first_node));
  }
  if (missing.empty()) return absl::OkStatus();
  return DataLoss("{} {} not supported: {}", missing.size(),
                  missing.size() == 1 ? "operator is" : "operators are", fmt::join(missing, ", "));
}

// ---- the graph ---------------------------------------------------------------------------------

// Imports the graph of a model as the function "main".
class Importer {
 public:
  Importer(onnx::ModelProto& model, const std::filesystem::path& folder, const OnnxOptions& options)
      : graph_(*model.mutable_graph()),
        model_(model),
        options_(options),
        fn_(*module_->AddFunction("main")),
        files_(folder),
        dims_(fn_),
        scope_{.module = *module_,
               .fn = fn_,
               .opsets = &opsets_,
               .files = files_,
               .values = {},
               .dims = dims_,
               .functions = &functions_} {}

  absl::StatusOr<std::unique_ptr<ir::Module>> Run() {
    FORGE_ASSIGN_OR_RETURN(opsets_, OpsetsOf(model_));
    FORGE_RETURN_IF_ERROR(functions_.Read(model_));
    FORGE_RETURN_IF_ERROR(functions_.CheckCalls(graph_));
    FORGE_RETURN_IF_ERROR(CheckSupported(graph_, opsets_, functions_));
    FORGE_ASSIGN_OR_RETURN(const std::vector<int> order, OrderNodes(graph_, {}));
    FORGE_RETURN_IF_ERROR(ReadInitializers(scope_, graph_));
    FORGE_RETURN_IF_ERROR(ReadInputs());
    CollectReads(scope_, graph_);
    for (size_t i = 0; i < order.size(); ++i) {
      FORGE_RETURN_IF_ERROR(ImportNode(scope_, *graph_.mutable_node(order[i])));
      if (options_.progress) options_.progress(i + 1, order.size());
    }
    FORGE_RETURN_IF_ERROR(ReadOutputs(scope_, graph_));
    FORGE_RETURN_IF_ERROR(ReadMetadata());
    return Finish();
  }

  static absl::Status ReadInitializers(OnnxScope& scope, onnx::GraphProto& graph);
  static void CollectReads(OnnxScope& scope, const onnx::GraphProto& graph);
  static absl::Status ReadOutputs(OnnxScope& scope, const onnx::GraphProto& graph);

 private:
  absl::Status ReadInputs();
  absl::Status ReadMetadata();
  absl::StatusOr<std::unique_ptr<ir::Module>> Finish();

  std::unique_ptr<ir::Module> module_ = std::make_unique<ir::Module>();
  onnx::GraphProto& graph_;
  onnx::ModelProto& model_;
  const OnnxOptions& options_;
  ir::Function& fn_;
  Opsets opsets_;
  ExternalFiles files_;
  OnnxFunctions functions_;
  ir::DimValues dims_;
  OnnxScope scope_;
};

absl::Status Importer::ReadInitializers(OnnxScope& scope, onnx::GraphProto& graph) {
  if (graph.sparse_initializer_size() > 0)
    return DataLoss("initializer '{}' is sparse, which is not supported",
                    graph.sparse_initializer(0).values().name());
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    absl::StatusOr<ir::HostValue> value = TakeOnnxTensor(tensor, scope.files);
    if (!value.ok())
      return Annotate(value.status(), fmt::format("initializer '{}'", tensor.name()));
    OnnxValue& entry = scope.values[tensor.name()];
    // Integers are indices and shapes: what they decide must be known, and they are not trained.
    if (Has(kIntTypes, value->dtype())) entry.role = ir::Variable::Role::kConstant;
    entry.constant = *std::move(value);
  }
  return absl::OkStatus();
}

absl::Status Importer::ReadInputs() {
  for (const auto& [name, shape] : options_.shapes) {
    const auto is_it = [&name = name](const onnx::ValueInfoProto& v) { return v.name() == name; };
    if (std::ranges::none_of(graph_.input(), is_it))
      return InvalidArgument("the model has no input '{}'", name);
  }
  NameSymbols(graph_, *module_);
  for (const onnx::ValueInfoProto& input : graph_.input()) {
    OnnxValue& value = scope_.values[input.name()];
    if (value.constant) continue;  // an initialiser is its default
    FORGE_ASSIGN_OR_RETURN(ir::Type type, TypeOfInput(input, options_, *module_));
    value.value = fn_.Argument(input.name(), std::move(type));
  }
  return RefusalOf(fn_);
}

void Importer::CollectReads(OnnxScope& scope, const onnx::GraphProto& graph) {
  for (const onnx::NodeProto& node : graph.node())
    for (std::string& name : ReadNames(node)) scope.read.insert(std::move(name));
  for (const onnx::ValueInfoProto& output : graph.output()) scope.read.insert(output.name());
}

absl::Status Importer::ReadOutputs(OnnxScope& scope, const onnx::GraphProto& graph) {
  if (graph.output_size() == 0) return DataLoss("the graph has no output");
  for (const onnx::ValueInfoProto& output : graph.output()) {
    if (!scope.values.contains(output.name()))
      return DataLoss("output '{}' is not defined by any node", output.name());
    const ir::Value value = ValueOf(scope, output.name());
    const int32_t code = output.type().tensor_type().elem_type();
    const bool stated = code != 0 && value.type().kind() != ir::Type::Kind::kUnknown;
    const absl::StatusOr<DType> dtype = stated ? OnnxDType(code) : value.type().dtype();
    if (!dtype.ok()) return Annotate(dtype.status(), fmt::format("output '{}'", output.name()));
    if (*dtype != value.type().dtype())
      return DataLoss("output '{}' is {}, but the file states {}", output.name(),
                      value.type().ToText(), Name(*dtype));
    scope.fn.Return(output.name(), value);
  }
  return RefusalOf(scope.fn);
}

absl::Status Importer::ReadMetadata() {
  for (const onnx::StringStringEntryProto& entry : model_.metadata_props()) {
    const auto is_it = [&](const auto& known) { return known.first == entry.key(); };
    if (std::ranges::any_of(module_->metadata, is_it))
      return DataLoss("metadata '{}' is given twice", entry.key());
    module_->metadata.emplace_back(entry.key(), entry.value());
  }
  return absl::OkStatus();
}

// Leaves out what only computed shapes that are known by now.
absl::StatusOr<std::unique_ptr<ir::Module>> Importer::Finish() {
  auto main = std::make_unique<ir::Function>("main", module_.get());
  FORGE_RETURN_IF_ERROR(ir::Rewriter{.pass = "import"}.Run(fn_, *main));
  module_->Replace("main", std::move(main));
  FORGE_RETURN_IF_ERROR(ir::Verify(*module_));
  return std::move(module_);
}

}  // namespace

absl::StatusOr<ir::Function*> formats::ImportBody(OnnxScope& outer, onnx::GraphProto& graph,
                                                  const ir::Types& inputs,
                                                  const std::vector<std::string>& captures,
                                                  ir::Module* trial) {
  if (graph.input_size() != static_cast<int>(inputs.size()))
    return DataLoss("the graph has {} inputs, not {}", graph.input_size(), inputs.size());
  ir::Module& module = trial == nullptr ? outer.module : *trial;
  ir::Function& fn = *module.AddFunction(graph.name().empty() ? "body" : graph.name());
  ir::DimValues dims(fn);
  OnnxScope scope{.module = module,
                  .fn = fn,
                  .opsets = outer.opsets,
                  .files = outer.files,
                  .values = {},
                  .dims = dims,
                  .functions = outer.functions,
                  .is_body = true,
                  .trials = outer.trials + (trial == nullptr ? 0 : 1)};
  absl::flat_hash_set<std::string> around;
  for (const std::string& name : FreeNames(graph)) {
    const auto at = outer.values.find(name);
    if (at == outer.values.end()) continue;  // OrderNodes says so
    around.insert(name);
    if (at->second.constant)
      scope.values[name] = {.value = {}, .constant = at->second.constant, .role = at->second.role};
  }
  FORGE_ASSIGN_OR_RETURN(const std::vector<int> order, OrderNodes(graph, around));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = graph.input(static_cast<int>(i)).name();
    scope.values[name].value = fn.Argument(name, inputs[i]);
  }
  for (const std::string& name : captures) {
    const ir::Value argument = fn.Argument("outer." + name, ValueOf(outer, name).type());
    if (around.contains(name)) scope.values[name].value = argument;
  }
  FORGE_RETURN_IF_ERROR(Importer::ReadInitializers(scope, graph));
  Importer::CollectReads(scope, graph);
  for (const int node : order) FORGE_RETURN_IF_ERROR(ImportNode(scope, *graph.mutable_node(node)));
  FORGE_RETURN_IF_ERROR(Importer::ReadOutputs(scope, graph));
  return &fn;
}

absl::StatusOr<std::unique_ptr<ir::Module>> ImportOnnx(const std::filesystem::path& path,
                                                       const OnnxOptions& options) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  return ImportOnnx(file, path.string(), folder, options);
}

absl::StatusOr<std::unique_ptr<ir::Module>> ImportOnnx(const Bytes& model, std::string_view where,
                                                       const std::filesystem::path& folder,
                                                       const OnnxOptions& options) {
  absl::StatusOr<onnx::ModelProto> proto = Parse(model);
  if (!proto.ok()) return Annotate(proto.status(), where);
  absl::StatusOr<std::unique_ptr<ir::Module>> module = Importer(*proto, folder, options).Run();
  if (!module.ok()) return Annotate(module.status(), where);
  return module;
}

std::vector<OnnxOperator> KnownOnnxOperators() {
  std::map<std::pair<std::string_view, std::string_view>, std::vector<int>> versions;
  for (const OnnxOp& op : OnnxOps()) versions[{op.domain, op.name}].push_back(op.since);
  std::vector<OnnxOperator> out;
  for (auto& [key, since] : versions) {
    std::sort(since.begin(), since.end());
    out.push_back({std::string(key.first), std::string(key.second), std::move(since)});
  }
  return out;
}

absl::StatusOr<std::vector<OnnxOperatorUse>> ListOnnxOperators(const std::filesystem::path& path) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  absl::StatusOr<onnx::ModelProto> model = Parse(file);
  if (!model.ok()) return Annotate(model.status(), path.string());
  const absl::StatusOr<Opsets> opsets = OpsetsOf(*model);
  if (!opsets.ok()) return Annotate(opsets.status(), path.string());
  OnnxFunctions functions;
  if (absl::Status s = functions.Read(*model); !s.ok()) return Annotate(s, path.string());
  Uses uses = Counter(functions).Run(model->graph(), *opsets);
  std::vector<OnnxOperatorUse> out;
  for (auto& [key, use] : uses) out.push_back(std::move(use));
  return out;
}

}  // namespace forge
