// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/functions.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "formats/onnx/graph.h"
#include "formats/onnx/ops.h"

namespace forge::formats {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr int64_t kMaxNodes = 1'000'000;
constexpr int kMaxDepth = 200;  // of calls within calls: each takes some stack

// FunctionProto.attribute_proto, which the messages of ONNX 1.12 do not know.
absl::StatusOr<std::vector<onnx::AttributeProto>> DefaultsOf(const onnx::FunctionProto& f) {
  constexpr int kField = 11;
  const std::string bytes = f.SerializeAsString();
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  std::vector<onnx::AttributeProto> out;
  while (const uint32_t tag = in.ReadTag()) {
    const bool is_it =
        WireFormatLite::GetTagFieldNumber(tag) == kField &&
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (!is_it) {
      if (!WireFormatLite::SkipField(&in, tag)) return DataLoss("a function is damaged");
      continue;
    }
    std::string attribute;
    if (!WireFormatLite::ReadBytes(&in, &attribute) ||
        !out.emplace_back().ParseFromString(attribute))
      return DataLoss("a default of an attribute is damaged");
  }
  return out;
}

// Puts a call's names and attributes into nodes of a function.
class Substitution {
 public:
  Substitution(const onnx::NodeProto& call, const OnnxFunction& f, std::string prefix)
      : call_(call), f_(f), prefix_(std::move(prefix)) {
    for (int i = 0; i < f.proto.input_size(); ++i)
      names_[f.proto.input(i)] = i < call.input_size() ? call.input(i) : "";
  }

  absl::Status NameResults(onnx::GraphProto& graph) {
    for (int i = 0; i < f_.proto.output_size(); ++i) {
      const std::string& inner = f_.proto.output(i);
      if (i >= call_.output_size() || call_.output(i).empty()) continue;
      // A result that is an operand, or another result, gets a node of its own.
      if (names_.emplace(inner, call_.output(i)).second) continue;
      if (names_.at(inner).empty())
        return DataLoss("result '{}' is an operand that is not given", inner);
      onnx::NodeProto& copy = *graph.add_node();
      copy.set_op_type("Identity");
      copy.add_input(names_.at(inner));
      copy.add_output(call_.output(i));
    }
    return absl::OkStatus();
  }

  void Apply(onnx::NodeProto& node) {
    if (!node.name().empty()) node.set_name(prefix_ + node.name());
    for (std::string& name : *node.mutable_input()) name = Renamed(name);
    for (std::string& name : *node.mutable_output()) name = Renamed(name);
    for (int i = node.attribute_size(); i-- > 0;)
      if (!Apply(*node.mutable_attribute(i))) node.mutable_attribute()->DeleteSubrange(i, 1);
  }

 private:
  std::string Renamed(const std::string& name) {
    if (name.empty()) return name;
    return names_.emplace(name, prefix_ + name).first->second;
  }

  // False where it refers to an attribute that neither the call nor the function gives.
  bool Apply(onnx::AttributeProto& a) {
    if (a.has_ref_attr_name()) {
      const onnx::AttributeProto* given = Given(a.ref_attr_name());
      if (given == nullptr) return false;
      const std::string name = a.name();
      a = *given;
      a.set_name(name);
      return true;
    }
    if (a.has_g()) Apply(*a.mutable_g());
    for (onnx::GraphProto& g : *a.mutable_graphs()) Apply(g);
    return true;
  }

  void Apply(onnx::GraphProto& g) {
    for (onnx::ValueInfoProto& v : *g.mutable_input()) v.set_name(Renamed(v.name()));
    for (onnx::TensorProto& t : *g.mutable_initializer()) t.set_name(Renamed(t.name()));
    for (onnx::NodeProto& node : *g.mutable_node()) Apply(node);
    for (onnx::ValueInfoProto& v : *g.mutable_output()) v.set_name(Renamed(v.name()));
  }

  const onnx::AttributeProto* Given(const std::string& name) const {
    for (const onnx::AttributeProto& a : call_.attribute())
      if (a.name() == name) return &a;
    const auto at = std::ranges::find(f_.defaults, name, &onnx::AttributeProto::name);
    return at == f_.defaults.end() ? nullptr : &*at;
  }

  const onnx::NodeProto& call_;
  const OnnxFunction& f_;
  const std::string prefix_;
  absl::flat_hash_map<std::string, std::string> names_;
};

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Counts the nodes that calls come to, once for each function.
class CallCounter {
 public:
  explicit CallCounter(const OnnxFunctions& functions) : functions_(functions) {}

  struct Size {
    int64_t nodes = 0;
    int depth = 0;  // of calls
  };

  absl::StatusOr<Size> Count(const Nodes& nodes) {
    Size all;
    const auto add = [&](const Size& size) {
      all.nodes = std::min(all.nodes + size.nodes, kMaxNodes + 1);
      all.depth = std::max(all.depth, size.depth);
    };
    for (const onnx::NodeProto& node : nodes) {
      add({1, 0});
      if (const OnnxFunction* f = functions_.Find(node)) {
        FORGE_ASSIGN_OR_RETURN(const Size inner, Count(*f));
        add({inner.nodes, inner.depth + 1});
      }
      for (const onnx::AttributeProto& a : node.attribute()) {
        if (!a.has_g()) continue;
        FORGE_ASSIGN_OR_RETURN(const Size body, Count(a.g().node()));
        add(body);
      }
    }
    return all;
  }

 private:
  absl::StatusOr<Size> Count(const OnnxFunction& f) {
    const auto [at, added] = sizes_.emplace(&f, std::nullopt);
    if (!added && at->second) return *at->second;
    if (!added) return DataLoss("function '{}' calls itself", f.proto.name());
    if (++open_ > kMaxDepth) return TooDeep();
    FORGE_ASSIGN_OR_RETURN(const Size size, Count(f.proto.node()));
    --open_;
    if (size.depth >= kMaxDepth) return TooDeep();
    sizes_[&f] = size;
    return size;
  }

  static absl::Status TooDeep() {
    return ResourceExhausted("calls of functions are nested more than {} deep", kMaxDepth);
  }

  const OnnxFunctions& functions_;
  std::map<const OnnxFunction*, std::optional<Size>> sizes_;  // nullopt: being counted
  int open_ = 0;
};

}  // namespace

absl::Status OnnxFunctions::CheckCalls(const onnx::GraphProto& graph) const {
  if (functions_.empty()) return absl::OkStatus();
  FORGE_ASSIGN_OR_RETURN(const CallCounter::Size size, CallCounter(*this).Count(graph.node()));
  if (size.nodes <= kMaxNodes) return absl::OkStatus();
  return ResourceExhausted("with the calls of functions it has more than {} nodes", kMaxNodes);
}

absl::Status OnnxFunctions::Read(onnx::ModelProto& model) {
  for (onnx::FunctionProto& proto : *model.mutable_functions()) {
    const std::pair key{std::string(NormalDomain(proto.domain())), proto.name()};
    OnnxFunction f;
    FORGE_ASSIGN_OR_RETURN(f.defaults, DefaultsOf(proto));
    for (const onnx::OperatorSetIdProto& set : proto.opset_import())
      f.opsets.emplace(NormalDomain(set.domain()), set.version());
    f.proto = std::move(proto);
    if (!functions_.emplace(key, std::move(f)).second)
      return DataLoss("function '{}' of domain '{}' is defined twice", key.second, key.first);
  }
  return absl::OkStatus();
}

const OnnxFunction* OnnxFunctions::Find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto at = functions_.find({std::string(DomainOf(node)), node.op_type()});
  if (at == functions_.end() || FindOnnxOp(node.domain(), node.op_type(), INT32_MAX) != nullptr)
    return nullptr;
  return &at->second;
}

absl::StatusOr<onnx::GraphProto> OnnxFunctions::NodesOf(const onnx::NodeProto& call,
                                                        const OnnxFunction& f) {
  if (call.input_size() > f.proto.input_size() || call.output_size() > f.proto.output_size())
    return DataLoss("it has {} inputs and {} outputs, the function {} and {}", call.input_size(),
                    call.output_size(), f.proto.input_size(), f.proto.output_size());
  onnx::GraphProto graph;
  Substitution names(call, f, fmt::format("{}.{}/", f.proto.name(), ++calls_));
  FORGE_RETURN_IF_ERROR(names.NameResults(graph));
  for (const onnx::NodeProto& node : f.proto.node()) {
    onnx::NodeProto& copy = *graph.add_node() = node;
    names.Apply(copy);
  }
  return graph;
}

}  // namespace forge::formats
