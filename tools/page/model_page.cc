// SPDX-License-Identifier: Apache-2.0
#include "tools/page/model_page.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/graph/copier.h"
#include "ir/graph/interpreter.h"
#include "ir/op/attributes.h"
#include "ir/op/signature.h"
#include "tools/page/fused_ops.h"
#include "tools/page/layered_layout.h"
#include "tools/page/page_box.h"
#include "tools/page/tensor_summary.h"
#include "viewer_files.h"

namespace forge::tools {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostNodes = 20'000;
constexpr size_t kMostStatisticsBytes = 4u << 20;
constexpr size_t kMostName = 200, kMostText = 600, kMostLabel = 40;  // bytes
// Cut at a letter's start, with dots where something is missing.
std::string Cut(std::string_view s, size_t most) {
  if (s.size() <= most) return std::string(s);
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(s[end]) & 0xC0) == 0x80) --end;
  return std::string(s.substr(0, end)) + "…";
}

std::string_view KindOf(const ir::OpDef& def) {
  if (def.scalar != nullptr) return "elementwise";
  if (def.map != nullptr) return "movement";
  return def.decompose != nullptr ? "composite" : "primitive";
}

std::string_view RoleName(ir::Variable::Role r) {
  static constexpr std::string_view kNames[] = {"constant", "parameter", "state"};
  return kNames[static_cast<size_t>(r)];
}

// The variables that functions read, each once.
class Weights {
 public:
  size_t Add(const ir::Variable& v) {
    const auto [at, fresh] = index_.emplace(&v, index_.size());
    if (fresh) out_.push_back(Describe(v));
    return at->second;
  }
  Json Take() { return std::move(out_); }

 private:
  Json Describe(const ir::Variable& v) {
    Json j = {{"name", Cut(v.name, kMostName)},
              {"role", std::string(RoleName(v.role))},
              {"type", Cut(v.type.ToText(), kMostText)}};
    if (!v.init) {
      j["note"] = "nothing is stored: zeros, or computed when the model is loaded";
      return j;
    }
    if (bytes_ > kMostStatisticsBytes) {
      j["note"] = "statistics are left out: the page would grow too large";
      return j;
    }
    const bool real = v.type.is_tensor() && v.type.dtype() != DType::kC64 &&
                      v.type.dtype() != DType::kC128 && v.type.dtype() != DType::kString;
    const auto value = real ? ir::InitialValue(v) : Unimplemented("no numbers to show");
    if (!value.ok()) {
      j["note"] = Cut(Message(value.status()), kMostText);
      return j;
    }
    j["summary"] = ToJson(Summarise(*value));
    bytes_ += j.dump(-1, ' ', true, Json::error_handler_t::replace).size();
    return j;
  }

  absl::flat_hash_map<const ir::Variable*, size_t> index_;
  Json out_ = Json::array();
  size_t bytes_ = 0;
};

// What the boxes of all functions are made of.
struct Shared {
  const PageSteps& steps;
  double total_ms = 0;
  Weights weights = {};
  absl::flat_hash_map<const ir::Function*, size_t> number_of = {};
};

// One function: boxes for arguments, nodes and results, in this order; edges between them. Nodes
// that make one number many times are no boxes: their readers say the number.
class FunctionData {
 public:
  FunctionData(const ir::Function& f, Shared& shared, size_t most)
      : f_(f), shared_(shared), most_(most), fills_(f.value_count()) {}

  Json Make() {
    producer_.assign(f_.value_count(), UINT32_MAX);
    FindFills();
    for (const auto& a : f_.arguments()) AddArgument(a);
    const size_t shown = std::min(most_, f_.nodes().size());
    for (size_t i = 0; i < shown; ++i)
      if (fills_[f_.nodes()[i].first_out].empty()) AddNode(f_.nodes()[i]);
    for (const auto& r : f_.results()) AddPort("output", r.name, r.value, "result");
    for (const auto& u : f_.updates())
      AddPort("update", u.variable->name, u.value, "new value of a variable");
    return Place(f_.nodes().size() - shown);
  }

 private:
  struct Edge {
    uint32_t value;
    std::string label;  // empty: the line says nothing new
  };

  void FindFills() {
    for (const ir::Node& n : f_.nodes())
      if (n.outs == 1) fills_[n.first_out] = FillText(f_, n);
    for (const auto& r : f_.results()) fills_[r.value].clear();
    for (const auto& u : f_.updates()) fills_[u.value].clear();
  }

  std::string NameOf(uint32_t value) const {
    const std::string_view name = f_.NameOf(value);
    return name.empty() ? fmt::format("%{}", value) : Cut(name, kMostName);
  }

  void AddArgument(const ir::Function::Input& a) {
    producer_[a.value] = static_cast<uint32_t>(boxes_.size());
    Json value = {{"name", Cut(a.name, kMostName)},
                  {"type", Cut(f_.type(a.value).ToText(), kMostText)}};
    Push({{"kind", "input"}, {"out", Json::array({std::move(value)})}},
         {Cut(a.name, kMostName), {{"name", Cut(ShapeText(f_.type(a.value)), kMostName)}}}, 0);
  }

  void AddPort(std::string_view kind, std::string_view name, uint32_t value,
               std::string_view what) {
    Json node = {{"kind", kind}, {"in", Json::array({Operand(value, what)})}};
    Connect(value);
    Push(std::move(node),
         {Cut(name, kMostName), {{"name", Cut(ShapeText(f_.type(value)), kMostName)}}}, 0);
  }

  // What a node reads: a variable, a number, or what another box makes.
  Json Operand(uint32_t value, std::string_view role) {
    if (value == ir::kAbsent) return {{"name", "not given"}, {"role", role}};
    Json j = {{"type", Cut(f_.type(value).ToText(), kMostText)}, {"role", role}};
    if (const ir::Variable* v = f_.VariableOf(value)) {
      j["variable"] = shared_.weights.Add(*v);
      j["name"] = Cut(v->name, kMostName);
    } else if (!fills_[value].empty()) {
      j["name"] = fills_[value];
    } else {
      j["name"] = NameOf(value);
      if (producer_[value] != UINT32_MAX) j["from"] = producer_[value];
    }
    return j;
  }

  void Connect(uint32_t value) {
    if (value == ir::kAbsent || producer_[value] == UINT32_MAX) return;
    const LayoutEdge e{producer_[value], static_cast<uint32_t>(boxes_.size())};
    for (size_t i = edges_.size(); i-- > 0 && edges_[i].to == e.to;)
      if (edges_[i].from == e.from && carried_[i].value == value) return;
    edges_.push_back(e);
    carried_.push_back({value, LabelOnce(value)});
  }

  // A value's shape stands beside its first line, where it is not that of the box's first operand.
  std::string LabelOnce(uint32_t value) {
    if (!labelled_.insert(value).second) return "";
    return LabelOf(value);
  }
  std::string LabelOf(uint32_t value) const {
    const ir::Function::Origin& origin = f_.origin(value);
    if (origin.kind != ir::Function::Origin::kNode) return "";
    const ir::Node& node = f_.nodes()[origin.index];
    const std::string shape = ShapeText(f_.type(value));
    for (const uint32_t v : node.in) {
      if (v == ir::kAbsent || f_.VariableOf(v) != nullptr || !fills_[v].empty()) continue;
      if (node.outs == 1 && ShapeText(f_.type(v)) == shape) return "";
      break;
    }
    return Cut(shape, kMostLabel);
  }

  Json Attributes(const ir::Node& n) const {
    Json out = Json::array();
    for (const Field& field : n.op.def().fields)
      out.push_back({field.name, Cut(ir::FieldText(field, n.op.self()), kMostText), field.doc});
    return out;
  }

  void AddNode(const ir::Node& n) {
    const std::string from = n.from ? n.from->ToText() : "";
    const ir::Signature& signature = ir::SignatureOf(n.op.def());
    Json in = Json::array(), out = Json::array(), bodies = Json::array();
    for (size_t i = 0; i < n.in.size(); ++i)
      in.push_back(Operand(n.in[i], signature.input(i).name));
    for (const ir::RuntimeAttribute& runtime : n.runtime_attributes)
      in.push_back(Operand(runtime.value, n.op.def().fields[runtime.field].name));
    for (uint32_t v : n.in) Connect(v);
    for (const ir::RuntimeAttribute& runtime : n.runtime_attributes) Connect(runtime.value);
    size_t label = 0;
    for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) {
      producer_[v] = static_cast<uint32_t>(boxes_.size());
      out.push_back({{"name", NameOf(v)}, {"type", Cut(f_.type(v).ToText(), kMostText)}});
      label = std::max(label, Letters(LabelOf(v)));
    }
    for (const ir::Function* body : BodiesOf(n.op))
      if (const auto at = shared_.number_of.find(body); at != shared_.number_of.end())
        bodies.push_back(at->second);
    Json node = {{"kind", KindOf(n.op.def())},
                 {"from", Cut(from, kMostText)},
                 {"pass", n.from ? Cut(n.from->pass, kMostName) : ""},
                 {"attributes", Attributes(n)},
                 {"formula", n.op.def().info.formula},
                 {"in", std::move(in)},
                 {"out", std::move(out)}};
    if (!bodies.empty()) node["bodies"] = std::move(bodies);
    BoxText text{OpsOf(n), {{"name", Cut(from.empty() ? NameOf(n.first_out) : from, kMostName)}}};
    for (BoxLine& line : LinesOf(f_, n, fills_))
      text.lines.push_back({line.kind, Cut(line.text, kMostName)});
    AddStep(n, node, text);
    Push(std::move(node), std::move(text), label);
  }

  void AddStep(const ir::Node& n, Json& node, BoxText& text) const {
    const auto step = shared_.steps.find(&n);
    if (step == shared_.steps.end()) return;
    const PageStep& s = step->second;
    node["step"] = s.number;
    node["kernel"] = Cut(s.kernel, kMostName);
    text.lines.push_back({"kernel", Cut(s.kernel, kMostName)});
    if (s.ms < 0) return;
    node["ms"] = s.ms;
    node["share"] = shared_.total_ms > 0 ? s.ms / shared_.total_ms : 0;
    text.lines.push_back(
        {"kernel", fmt::format("{:.3f} ms, {:.1f} %", s.ms, 100 * node["share"].get<double>())});
  }

  void Push(Json node, BoxText text, size_t label) {
    boxes_.push_back(SizeOf(text, label));
    node["op"] = std::move(text.head);
    node["title"] = text.lines.empty() ? "" : text.lines[0].text;
    node["lines"] = Json::array();
    for (BoxLine& line : text.lines) node["lines"].push_back({line.kind, std::move(line.text)});
    nodes_.push_back(std::move(node));
  }

  static Json Points(const std::vector<LayoutPoint>& route) {
    Json out = Json::array();
    for (const LayoutPoint& p : route) {
      out.push_back(std::lround(p.x));
      out.push_back(std::lround(p.y));
    }
    return out;
  }

  // Lines begin and end beside one another along the edge of a box: by result where they leave it,
  // from left to right where they come in.
  void Spread(std::vector<std::vector<LayoutPoint>>& routes) const {
    std::vector<std::vector<size_t>> into(boxes_.size());
    for (size_t e = 0; e < edges_.size(); ++e) {
      if (routes[e].empty()) continue;
      into[edges_[e].to].push_back(e);
      const ir::Function::Origin& origin = f_.origin(carried_[e].value);
      if (origin.kind != ir::Function::Origin::kNode) continue;
      const ir::Node& node = f_.nodes()[origin.index];
      routes[e].front().x +=
          PortOffset(carried_[e].value - node.first_out, node.outs, boxes_[edges_[e].from].width);
    }
    for (std::vector<size_t>& edges : into) {
      const auto before = [&](size_t e) { return routes[e][routes[e].size() - 2].x; };
      std::stable_sort(edges.begin(), edges.end(),
                       [&](size_t a, size_t b) { return before(a) < before(b); });
      for (size_t i = 0; i < edges.size(); ++i)
        routes[edges[i]].back().x += PortOffset(i, edges.size(), boxes_[edges_[edges[i]].to].width);
    }
  }
  static double PortOffset(size_t i, size_t count, double width) {
    const double apart = std::min(28.0, 0.8 * width / static_cast<double>(count));
    return (static_cast<double>(i) - static_cast<double>(count - 1) / 2) * apart;
  }

  Json Place(size_t left_out) {
    Layout layout = LayOut(boxes_, edges_);
    Spread(layout.routes);
    for (size_t i = 0; i < boxes_.size(); ++i)
      nodes_[i]["box"] = {std::lround(layout.nodes[i].x), std::lround(layout.nodes[i].y),
                          std::lround(boxes_[i].width), std::lround(boxes_[i].height)};
    Json edges = Json::array();
    for (size_t e = 0; e < edges_.size(); ++e)
      edges.push_back({edges_[e].from, edges_[e].to,
                       Cut(f_.type(carried_[e].value).ToText(), kMostName),
                       Points(layout.routes[e]), carried_[e].label});
    return {{"name", Cut(f_.name(), kMostName)},
            {"nodes", std::move(nodes_)},
            {"edges", std::move(edges)},
            {"leftOut", left_out},
            {"size", {std::lround(layout.size.width), std::lround(layout.size.height)}}};
  }

  const ir::Function& f_;
  Shared& shared_;
  size_t most_;
  Json nodes_ = Json::array();
  std::vector<LayoutBox> boxes_;
  std::vector<LayoutEdge> edges_;
  std::vector<Edge> carried_;       // of each edge
  std::vector<uint32_t> producer_;  // by value: the box that makes it
  std::vector<std::string> fills_;  // by value: the number that stands for it; empty: none
  absl::flat_hash_set<uint32_t> labelled_;
};

// `functions` and what they have as bodies, each once.
std::vector<const ir::Function*> WithBodies(std::span<const ir::Function* const> functions) {
  std::vector<const ir::Function*> all(functions.begin(), functions.end());
  for (const ir::Function* f : functions)
    for (const ir::Function* body : BodiesUnder(*f))
      if (std::find(all.begin(), all.end(), body) == all.end()) all.push_back(body);
  return all;
}

// JSON that may stand in a script element: '<' begins neither a tag nor a comment there.
std::string ScriptSafe(const Json& data) {
  const std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string out;
  for (char c : text) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string ModelPageHtml(const ModelPage& page, std::span<const ir::Function* const> functions) {
  const std::vector<const ir::Function*> all = WithBodies(functions);
  Shared shared{.steps = page.steps};
  for (const auto& [node, step] : page.steps) shared.total_ms += std::max(0.0, step.ms);
  for (const ir::Function* f : all) shared.number_of.emplace(f, shared.number_of.size());
  Json list = Json::array(), metadata = Json::array();
  size_t left = kMostNodes;
  for (size_t i = 0; i < all.size(); ++i) {
    Json f = FunctionData(*all[i], shared, left).Make();
    f["body"] = i >= functions.size();
    list.push_back(std::move(f));
    left -= std::min(left, all[i]->nodes().size());
  }
  for (const auto& [key, value] : page.metadata)
    metadata.push_back({Cut(key, kMostName), Cut(value, kMostText)});
  const Json data = {{"title", page.title},          {"version", FORGE_VERSION},
                     {"totalMs", shared.total_ms},   {"metadata", metadata},
                     {"functions", std::move(list)}, {"variables", shared.weights.Take()}};
  return std::string(kViewerHead) + "<style>\n" + std::string(kViewerCss) + "</style>\n" +
         std::string(kViewerBody) + "<script type=\"application/json\" id=\"data\">" +
         ScriptSafe(data) + "</script>\n<script>\n" + std::string(kViewerJs) +
         "</script>\n</body>\n</html>\n";
}

}  // namespace forge::tools
