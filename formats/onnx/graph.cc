// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/graph.h"

#include <functional>
#include <queue>

#include "absl/container/flat_hash_map.h"

namespace forge::formats {
namespace {

constexpr int kNoNode = -1;  // the producer of inputs and initialisers
using Producers = absl::flat_hash_map<std::string, int>;

absl::StatusOr<Producers> ProducersOf(const onnx::GraphProto& graph) {
  Producers producers;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (input.name().empty()) return DataLoss("an input has no name");
    if (!producers.emplace(input.name(), kNoNode).second)
      return DataLoss("input '{}' is declared twice", input.name());
  }
  absl::flat_hash_map<std::string, int> initializers;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (tensor.name().empty()) return DataLoss("an initializer has no name");
    if (!initializers.emplace(tensor.name(), kNoNode).second)
      return DataLoss("initializer '{}' is given twice", tensor.name());
    producers.emplace(tensor.name(), kNoNode);  // may be an input's default
  }
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& output : graph.node(i).output()) {
      if (output.empty() || producers.emplace(output, i).second) continue;
      return DataLoss("node '{}' defines '{}', which is already defined", NameOfNode(graph.node(i)),
                      output);
    }
  }
  return producers;
}

// Walks back from an unordered node along unordered operands until one comes up again.
absl::Status CycleAt(const onnx::GraphProto& graph, const Producers& producers,
                     const std::vector<int>& missing) {
  int at = 0;
  while (missing[at] == 0) ++at;
  std::vector<bool> seen(missing.size());
  while (!seen[at]) {
    seen[at] = true;
    for (const std::string& input : ReadNames(graph.node(at))) {
      const auto producer = producers.find(input);
      if (producer == producers.end() || producer->second == kNoNode ||
          missing[producer->second] == 0)
        continue;
      at = producer->second;
      break;
    }
  }
  return DataLoss("node '{}' ({}) depends on its own result: the graph has a cycle",
                  NameOfNode(graph.node(at)), graph.node(at).op_type());
}

}  // namespace

std::string_view NormalDomain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

std::string NameOfNode(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output())
    if (!output.empty()) return "(unnamed) -> " + output;
  return "(unnamed)";
}

std::vector<std::string> FreeNames(const onnx::GraphProto& graph) {
  absl::flat_hash_set<std::string> known;
  for (const onnx::ValueInfoProto& input : graph.input()) known.insert(input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) known.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node())
    known.insert(node.output().begin(), node.output().end());
  std::vector<std::string> free;
  const auto read = [&](const std::string& name) {
    if (!name.empty() && known.insert(name).second) free.push_back(name);
  };
  for (const onnx::NodeProto& node : graph.node())
    for (const std::string& name : ReadNames(node)) read(name);
  for (const onnx::ValueInfoProto& output : graph.output()) read(output.name());
  return free;
}

std::vector<std::string> ReadNames(const onnx::NodeProto& node) {
  std::vector<std::string> names(node.input().begin(), node.input().end());
  for (const onnx::AttributeProto& a : node.attribute()) {
    if (!a.has_g()) continue;
    const std::vector<std::string> free = FreeNames(a.g());
    names.insert(names.end(), free.begin(), free.end());
  }
  return names;
}

absl::StatusOr<std::vector<int>> OrderNodes(const onnx::GraphProto& graph,
                                            const absl::flat_hash_set<std::string>& outer) {
  FORGE_ASSIGN_OR_RETURN(const Producers producers, ProducersOf(graph));
  std::vector<int> missing(static_cast<size_t>(graph.node_size()));  // operands not yet made
  std::vector<std::vector<int>> readers(missing.size());
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& input : ReadNames(graph.node(i))) {
      if (input.empty()) continue;
      const auto producer = producers.find(input);
      if (producer == producers.end() && outer.contains(input)) continue;
      if (producer == producers.end())
        return DataLoss("node '{}' ({}) reads '{}', which is not defined",
                        NameOfNode(graph.node(i)), graph.node(i).op_type(), input);
      if (producer->second == kNoNode) continue;
      ++missing[i];
      readers[producer->second].push_back(i);
    }
  }
  // The first of the file among those that are ready.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < graph.node_size(); ++i)
    if (missing[i] == 0) ready.push(i);
  std::vector<int> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const int reader : readers[order.back()])
      if (--missing[reader] == 0) ready.push(reader);
  }
  if (order.size() != missing.size()) return CycleAt(graph, producers, missing);
  return order;
}

}  // namespace forge::formats
