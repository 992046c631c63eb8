// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/scan.h"

#include <algorithm>
#include <string>

#include "formats/onnx/new_node.h"

namespace forge::formats {
namespace {

using onnx::AttributeProto;
using onnx::NodeProto;

// The attributes and the parts of the node's lists.
struct ScanParts {
  const onnx::GraphProto* body = nullptr;
  int rows_in = 0;  // scanned inputs
  std::vector<int64_t> in_axes, in_directions, out_axes, out_directions;
  int states = 0, rows_out = 0;
};

absl::Status Fit(std::vector<int64_t>& list, int size, std::string_view name) {
  if (list.empty()) list.resize(static_cast<size_t>(size));
  if (list.size() == static_cast<size_t>(size)) return absl::OkStatus();
  return DataLoss("attribute '{}' has {} entries instead of {}", name, list.size(), size);
}

// As the body states it; -1 where it does not.
int RankOfRow(const onnx::GraphProto& body, int output) {
  const onnx::TypeProto::Tensor& type = body.output(output).type().tensor_type();
  return type.has_shape() ? type.shape().dim_size() : -1;
}

absl::StatusOr<ScanParts> PartsOf(const NodeProto& scan) {
  ScanParts p;
  for (const AttributeProto& a : scan.attribute()) {
    const std::vector<int64_t> ints(a.ints().begin(), a.ints().end());
    if (a.name() == "body" && a.has_g())
      p.body = &a.g();
    else if (a.name() == "num_scan_inputs")
      p.rows_in = static_cast<int>(a.i());
    else if (a.name() == "scan_input_axes")
      p.in_axes = ints;
    else if (a.name() == "scan_input_directions")
      p.in_directions = ints;
    else if (a.name() == "scan_output_axes")
      p.out_axes = ints;
    else if (a.name() == "scan_output_directions")
      p.out_directions = ints;
    else
      return DataLoss("attribute '{}' is not an attribute of Scan", a.name());
  }
  if (p.body == nullptr) return DataLoss("attribute 'body' is missing");
  if (p.rows_in < 1 || p.rows_in > scan.input_size())
    return DataLoss("num_scan_inputs is {} for {} inputs", p.rows_in, scan.input_size());
  p.states = scan.input_size() - p.rows_in;
  p.rows_out = scan.output_size() - p.states;
  if (p.rows_out < 0 || p.body->input_size() != scan.input_size() ||
      p.body->output_size() != scan.output_size())
    return DataLoss("its body has {} inputs and {} outputs instead of {} and {}",
                    p.body->input_size(), p.body->output_size(), scan.input_size(),
                    scan.output_size());
  FORGE_RETURN_IF_ERROR(Fit(p.in_axes, p.rows_in, "scan_input_axes"));
  FORGE_RETURN_IF_ERROR(Fit(p.in_directions, p.rows_in, "scan_input_directions"));
  FORGE_RETURN_IF_ERROR(Fit(p.out_axes, p.rows_out, "scan_output_axes"));
  FORGE_RETURN_IF_ERROR(Fit(p.out_directions, p.rows_out, "scan_output_directions"));
  for (int i = 0; i < p.rows_out; ++i) {
    const int64_t axis = p.out_axes[static_cast<size_t>(i)],
                  rank = RankOfRow(*p.body, p.states + i);
    if (axis != 0 && (rank < 0 || axis > rank || axis < -rank - 1))
      return DataLoss("scan_output_axes: {} does not fit rows of rank {}", axis, rank);
  }
  return p;
}

class Rewriting {
 public:
  Rewriting(const NodeProto& scan, const ScanParts& parts)
      : scan_(scan), parts_(parts), prefix_(scan.output(0) + ".scan.") {}

  std::vector<NodeProto> Run() {
    CountSteps();
    NodeProto loop = NewNode("Loop", {Name("steps"), ""}, "");
    loop.set_name(scan_.name());
    for (int i = 0; i < parts_.states; ++i) loop.add_input(scan_.input(i));
    *AddAttribute(loop, "body", AttributeProto::GRAPH).mutable_g() = Body();
    for (int i = 0; i < parts_.states; ++i) loop.add_output(scan_.output(i));
    for (int i = 0; i < parts_.rows_out; ++i) loop.add_output(Name(fmt::format("rows{}", i)));
    if (AnyBackwards()) loop.add_output(Name("backwards"));
    nodes_.push_back(std::move(loop));
    for (int i = 0; i < parts_.rows_out; ++i) PlaceRows(i);
    return std::move(nodes_);
  }

 private:
  std::string Name(const std::string& what) const { return prefix_ + what; }
  bool AnyBackwards() const {
    return std::ranges::any_of(parts_.out_directions, [](int64_t d) { return d != 0; });
  }

  // The extent of the first scanned input, and the last index.
  void CountSteps() {
    nodes_.push_back(NewNode("Shape", {scan_.input(parts_.states)}, Name("shape")));
    nodes_.push_back(NewConstant({parts_.in_axes[0]}, true, Name("axis")));
    nodes_.push_back(NewNode("Gather", {Name("shape"), Name("axis")}, Name("steps")));
    nodes_.push_back(NewConstant({1}, true, Name("one")));
    nodes_.push_back(NewNode("Sub", {Name("steps"), Name("one")}, Name("last")));
  }

  onnx::GraphProto Body() const {
    onnx::GraphProto body;
    body.set_name(parts_.body->name());
    body.add_input()->set_name(Name("step"));
    body.add_input()->set_name(Name("go_on"));
    for (int i = 0; i < parts_.states; ++i) *body.add_input() = parts_.body->input(i);
    *body.add_node() = NewNode("Identity", {Name("go_on")}, Name("go_on.next"));
    *body.add_node() = NewNode("Sub", {Name("last"), Name("step")}, Name("step.back"));
    for (int i = 0; i < parts_.rows_in; ++i) {
      const auto at = static_cast<size_t>(i);
      NodeProto& row = *body.add_node() =
          NewNode("Gather",
                  {scan_.input(parts_.states + i),
                   Name(parts_.in_directions[at] != 0 ? "step.back" : "step")},
                  parts_.body->input(parts_.states + i).name());
      AddAttribute(row, "axis", AttributeProto::INT).set_i(parts_.in_axes[at]);
    }
    for (const NodeProto& node : parts_.body->node()) *body.add_node() = node;
    *body.mutable_initializer() = parts_.body->initializer();
    body.add_output()->set_name(Name("go_on.next"));
    for (const onnx::ValueInfoProto& output : parts_.body->output()) *body.add_output() = output;
    if (AnyBackwards()) body.add_output()->set_name(Name("step.back"));
    return body;
  }

  // Rows stand along the first axis, in the order of the steps.
  void PlaceRows(int i) {
    const auto at = static_cast<size_t>(i);
    std::string rows = Name(fmt::format("rows{}", i));
    const std::string& out = scan_.output(parts_.states + i);
    if (parts_.out_directions[at] != 0) {
      const std::string back = Name(fmt::format("back{}", i));
      // Slice has no steps before opset 10.
      nodes_.push_back(NewNode("Gather", {rows, Name("backwards")}, back));
      rows = back;
    }
    if (parts_.out_axes[at] == 0) {
      nodes_.push_back(NewNode("Identity", {rows}, out));
      return;
    }
    NodeProto move = NewNode("Transpose", {rows}, out);
    AttributeProto& order = AddAttribute(move, "perm", AttributeProto::INTS);
    const int64_t rank = RankOfRow(*parts_.body, parts_.states + i) + 1;
    const int64_t axis = parts_.out_axes[at] + (parts_.out_axes[at] < 0 ? rank : 0);
    for (int64_t a = 0; a < rank; ++a) order.add_ints(a == axis ? 0 : a < axis ? a + 1 : a);
    nodes_.push_back(std::move(move));
  }

  const NodeProto& scan_;
  const ScanParts& parts_;
  const std::string prefix_;
  std::vector<NodeProto> nodes_;
};

}  // namespace

absl::StatusOr<std::vector<NodeProto>> ScanAsLoop(const NodeProto& scan) {
  FORGE_ASSIGN_OR_RETURN(const ScanParts parts, PartsOf(scan));
  if (scan.output_size() == 0 || scan.output(0).empty())
    return DataLoss("its output 0 has no name");
  return Rewriting(scan, parts).Run();
}

// A Scan over the batch, of a Scan of one item.
absl::StatusOr<std::vector<NodeProto>> BatchedScanAsLoop(const NodeProto& scan) {
  if (scan.input_size() < 2 || scan.output_size() == 0 || scan.output(0).empty())
    return DataLoss("it has {} inputs, and {} outputs", scan.input_size(), scan.output_size());
  if (!scan.input(0).empty()) return DataLoss("sequence_lens is not supported");
  const std::string prefix = scan.output(0) + ".item.";
  NodeProto one = NewNode("Scan", {}, ""), all = NewNode("Scan", {}, "");
  for (const AttributeProto& a : scan.attribute()) {
    *one.add_attribute() = a;
    if (a.name() == "directions")
      one.mutable_attribute()->rbegin()->set_name("scan_input_directions");
  }
  AddAttribute(all, "num_scan_inputs", AttributeProto::INT).set_i(scan.input_size() - 1);
  onnx::GraphProto& body = *AddAttribute(all, "body", AttributeProto::GRAPH).mutable_g();
  for (int i = 1; i < scan.input_size(); ++i) {
    all.add_input(scan.input(i));
    one.add_input(fmt::format("{}in{}", prefix, i));
    body.add_input()->set_name(one.input(i - 1));
  }
  for (int i = 0; i < scan.output_size(); ++i) {
    all.add_output(scan.output(i));
    one.add_output(fmt::format("{}out{}", prefix, i));
    body.add_output()->set_name(one.output(i));
  }
  FORGE_ASSIGN_OR_RETURN(const std::vector<NodeProto> nodes, ScanAsLoop(one));
  for (const NodeProto& node : nodes) *body.add_node() = node;
  return ScanAsLoop(all);
}

}  // namespace forge::formats
