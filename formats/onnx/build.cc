// SPDX-License-Identifier: Apache-2.0
// Building one node: at once, or as ir::Deferred where its types depend on values that are not
// known.
#include <algorithm>
#include <charconv>

#include "formats/onnx/deferred.h"
#include "formats/onnx/functions.h"
#include "formats/onnx/graph.h"
#include "formats/onnx/ops.h"
#include "formats/onnx/scan.h"
#include "formats/onnx/sequence_map.h"
#include "formats/untrusted/refusal.h"

namespace forge {
namespace {

using namespace formats;  // NOLINT: the private half of this file

absl::Status CheckOperands(const onnx::NodeProto& proto, const OnnxOp& op) {
  const int given = proto.input_size();
  if (given < op.min_inputs || given > op.max_inputs)
    return DataLoss("it has {} inputs instead of {} to {}", given, op.min_inputs, op.max_inputs);
  for (int i = 0; i < op.min_inputs; ++i)
    if (proto.input(i).empty()) return DataLoss("input {} is not given", i);
  return absl::OkStatus();
}

bool HasBody(const onnx::NodeProto& proto) {
  return std::ranges::any_of(proto.attribute(), [](const auto& a) { return a.has_g(); });
}

// Is the type of an operand of that kind? Constants are not added to the function for it.
bool AnyOperand(const OnnxScope& scope, const onnx::NodeProto& proto, ir::Type::Kind kind) {
  return std::ranges::any_of(proto.input(), [&](const std::string& name) {
    const auto at = scope.values.find(name);
    return at != scope.values.end() && at->second.value.type().kind() == kind;
  });
}

// 0 where the file imports no operators of that domain.
int64_t OpsetOf(const OnnxScope& scope, const onnx::NodeProto& proto) {
  const auto at = scope.opsets->find(DomainOf(proto));
  return at == scope.opsets->end() ? 0 : at->second;
}

ir::Values Defer(OnnxScope& scope, const onnx::NodeProto& proto, OnnxNode& node) {
  ir::Values in;
  for (size_t i = 0; i < node.inputs(); ++i) in.push_back(node.in(i));
  const ir::Deferred op{.format = fmt::format("onnx {}", OpsetOf(scope, proto)),
                        .node = proto.SerializeAsString(),
                        .results = proto.output_size(),
                        .reads = node.unknown()};
  return scope.fn.Add(op, in);
}

absl::Status Bind(OnnxScope& scope, const onnx::NodeProto& proto, OnnxNode& node,
                  const ir::Values& results) {
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& name = proto.output(i);
    if (name.empty()) continue;
    const auto at = static_cast<size_t>(i);
    if (i == 0 && node.defined()) {
      OnnxValue& value = scope.values[name];
      value.constant = *std::move(node.defined());
      value.role = ir::Variable::Role::kConstant;
    } else if (at < results.size() && results[at]) {
      scope.values[name].value = results[at];
      scope.fn.SetName(results[at], name);
    } else if (scope.read.contains(name)) {
      return DataLoss("its output {} ('{}') is not supported", i, name);
    }
  }
  return absl::OkStatus();
}

using Rewrite = absl::StatusOr<std::vector<onnx::NodeProto>> (*)(const onnx::NodeProto&);

// How other nodes express one; null: it is built itself.
Rewrite RewriteOf(const OnnxScope& scope, const onnx::NodeProto& node) {
  if (!DomainOf(node).empty()) return nullptr;
  if (node.op_type() == "Scan") return OpsetOf(scope, node) < 9 ? &BatchedScanAsLoop : &ScanAsLoop;
  return node.op_type() == "SequenceMap" ? &SequenceMapAsLoop : nullptr;
}

absl::Status ImportRewritten(OnnxScope& scope, const onnx::NodeProto& node, Rewrite rewrite) {
  absl::StatusOr<std::vector<onnx::NodeProto>> nodes = rewrite(node);
  const std::string where = fmt::format("node '{}' ({})", NameOfNode(node), node.op_type());
  if (!nodes.ok()) return Annotate(nodes.status(), where);
  for (onnx::NodeProto& made : *nodes)
    FORGE_RETURN_IF_ERROR(Annotate(ImportNode(scope, made), where));
  return absl::OkStatus();
}

// The nodes of a call, with the opsets of its function.
absl::Status ImportCall(OnnxScope& scope, const onnx::NodeProto& call, const OnnxFunction& f) {
  FORGE_ASSIGN_OR_RETURN(onnx::GraphProto graph, scope.functions->NodesOf(call, f));
  const absl::flat_hash_set<std::string> given(call.input().begin(), call.input().end());
  FORGE_ASSIGN_OR_RETURN(const std::vector<int> order, OrderNodes(graph, given));
  for (const onnx::NodeProto& node : graph.node())
    for (std::string& name : ReadNames(node)) scope.read.insert(std::move(name));
  const Opsets* outside = std::exchange(scope.opsets, f.opsets.empty() ? scope.opsets : &f.opsets);
  absl::Status status;
  for (size_t i = 0; i < order.size() && status.ok(); ++i)
    status = ImportNode(scope, *graph.mutable_node(order[i]));
  scope.opsets = outside;
  FORGE_RETURN_IF_ERROR(status);
  for (int i = 0; i < call.output_size(); ++i)
    if (!call.output(i).empty() && !scope.values.contains(call.output(i)))
      return DataLoss("the function does not define its result '{}'", f.proto.output(i));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> OpsetIn(std::string_view format) {
  int64_t opset = 0;
  const std::string_view number = format.starts_with("onnx ") ? format.substr(5) : "";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), opset);
  if (number.empty() || error != std::errc() || end != number.data() + number.size())
    return DataLoss("a deferred node has the unknown format '{}'", format);
  return opset;
}

}  // namespace

absl::Status formats::ImportNode(OnnxScope& scope, onnx::NodeProto& proto) {
  if (scope.functions != nullptr)
    if (const OnnxFunction* f = scope.functions->Find(proto))
      return Annotate(ImportCall(scope, proto, *f),
                      fmt::format("node '{}' ({})", NameOfNode(proto), proto.op_type()));
  if (const Rewrite rewrite = RewriteOf(scope, proto))
    return ImportRewritten(scope, proto, rewrite);
  const OnnxOp* op = FindOnnxOp(proto.domain(), proto.op_type(), OpsetOf(scope, proto));
  if (op == nullptr)
    return DataLoss("node '{}' ({}): opset {} of '{}' has no such operator", NameOfNode(proto),
                    proto.op_type(), OpsetOf(scope, proto), DomainOf(proto));
  auto from = std::make_shared<ir::Provenance>();
  from->node = NameOfNode(proto);
  from->kind = proto.op_type();
  const ir::Function::Scope at(scope.fn, std::move(from));
  OnnxNode node(proto, *op, scope);
  FORGE_RETURN_IF_ERROR(Annotate(CheckOperands(proto, *op), node.where()));
  const bool has_body = HasBody(proto);
  if (!has_body && (AnyOperand(scope, proto, ir::Type::Kind::kUnknown) ||
                    AnyOperand(scope, proto, ir::Type::Kind::kOptional)))
    return Annotate(Bind(scope, proto, node, Defer(scope, proto, node)), node.where());
  const onnx::NodeProto before = has_body ? onnx::NodeProto() : proto;
  ir::Values results = op->build(node);
  node.CheckAttributes();
  const bool open = scope.is_body || !node.unknown().empty() ||
                    AnyOperand(scope, proto, ir::Type::Kind::kUnranked);
  // The function's own message names the node already.
  if (node.status().ok() && !scope.fn.status().ok()) return RefusalOf(scope.fn);
  if (!node.status().ok() && open && !has_body)
    results = Defer(scope, before, node);
  else if (!node.status().ok())
    return Annotate(node.status(), node.where());
  return Annotate(Bind(scope, proto, node, results), node.where());
}

absl::StatusOr<DeferredResult> BuildDeferred(const ir::Deferred& deferred, ir::Function& fn,
                                             ir::ValueSpan in, ir::DimValues& dims) {
  FORGE_ASSIGN_OR_RETURN(const int64_t opset, OpsetIn(deferred.format));
  onnx::NodeProto proto;
  if (!proto.ParseFromString(deferred.node) || proto.output_size() != deferred.results ||
      proto.input_size() > static_cast<int>(in.size()) || HasBody(proto))
    return DataLoss("a deferred node is damaged");
  const OnnxOp* op = FindOnnxOp(proto.domain(), proto.op_type(), opset);
  if (op == nullptr)
    return DataLoss("a deferred node has the unknown operator '{}'", proto.op_type());
  const Opsets opsets = {{std::string(DomainOf(proto)), opset}};
  ExternalFiles files{std::filesystem::path()};
  OnnxScope scope{.module = *fn.module(),
                  .fn = fn,
                  .opsets = &opsets,
                  .files = files,
                  .values = {},
                  .dims = dims};
  for (int i = 0; i < proto.input_size(); ++i) {
    const ir::Value v = in[static_cast<size_t>(i)];
    if (proto.input(i).empty() == static_cast<bool>(v))
      return DataLoss("a deferred node is damaged");
    if (v) scope.values[proto.input(i)].value = v;
  }
  OnnxNode node(proto, *op, scope);
  DeferredResult result;
  result.status = CheckOperands(proto, *op);
  if (result.status.ok()) {
    result.values = op->build(node);
    node.CheckAttributes();
    result.status = node.status();
  }
  if (result.status.ok() && node.defined()) result.values = {node.MakeConstant(*node.defined())};
  result.reads = node.unknown();
  if (!result.status.ok()) {
    result.values.clear();
    result.status = Annotate(result.status, node.where());
  } else {
    result.values.resize(static_cast<size_t>(deferred.results));
  }
  return result;
}

}  // namespace forge
