// SPDX-License-Identifier: Apache-2.0
#include "tools/support/model_page.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "ir/attributes.h"
#include "ir/interpreter.h"
#include "tools/support/bodies.h"
#include "tools/support/layered_layout.h"
#include "tools/support/tensor_summary.h"
#include "viewer_files.h"

namespace forge::tools {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostNodes = 20'000;
constexpr size_t kMostStatisticsBytes = 4u << 20;
constexpr size_t kMostName = 200, kMostText = 600;  // bytes
// Of a box: pixels that a letter takes in the page's fonts, and of its lines.
constexpr double kLetter = 6.4, kLeastWidth = 84, kMostWidth = 240, kBoxHeight = 46,
                 kPortHeight = 38;

// Cut at a letter's start, with dots where something is missing.
std::string Cut(std::string_view s, size_t most) {
  if (s.size() <= most) return std::string(s);
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(s[end]) & 0xC0) == 0x80) --end;
  return std::string(s.substr(0, end)) + "…";
}

double WidthFor(std::string_view first, std::string_view second) {
  const auto letters = static_cast<double>(std::max(first.size(), second.size()));
  return std::clamp(letters * kLetter + 24, kLeastWidth, kMostWidth);
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

// JSON has no NaN.
Json Number(double v) { return std::isfinite(v) ? Json(v) : Json(fmt::format("{}", v)); }

Json SummaryJson(const TensorSummary& s) {
  Json first = Json::array();
  for (double v : s.first) first.push_back(Number(v));
  return {{"elements", s.elements},   {"lookedAt", s.looked_at},
          {"zeros", s.zeros},         {"notFinite", s.not_finite},
          {"min", Number(s.min)},     {"max", Number(s.max)},
          {"mean", Number(s.mean)},   {"deviation", Number(s.deviation)},
          {"histogram", s.histogram}, {"first", first}};
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
    j["summary"] = SummaryJson(Summarise(*value));
    bytes_ += j.dump(-1, ' ', true, Json::error_handler_t::replace).size();
    return j;
  }

  absl::flat_hash_map<const ir::Variable*, size_t> index_;
  Json out_ = Json::array();
  size_t bytes_ = 0;
};

// One function: boxes for arguments, nodes and results, in this order; edges between them.
class FunctionData {
 public:
  FunctionData(const ir::Function& f, Weights& weights,
               const absl::flat_hash_map<const ir::Function*, size_t>& number_of, size_t most)
      : f_(f), weights_(weights), number_of_(number_of), most_(most) {}

  Json Make() {
    producer_.assign(f_.value_count(), UINT32_MAX);
    for (const auto& a : f_.arguments()) AddArgument(a);
    const size_t shown = std::min(most_, f_.nodes().size());
    for (size_t i = 0; i < shown; ++i) AddNode(f_.nodes()[i]);
    for (const auto& r : f_.results()) AddPort("output", r.name, r.value, "result");
    for (const auto& u : f_.updates())
      AddPort("update", u.variable->name, u.value, "new value of a variable");
    return Place(f_.nodes().size() - shown);
  }

 private:
  std::string NameOf(uint32_t value) const {
    const std::string_view name = f_.NameOf(value);
    return name.empty() ? fmt::format("%{}", value) : Cut(name, kMostName);
  }

  void AddArgument(const ir::Function::Input& a) {
    producer_[a.value] = static_cast<uint32_t>(boxes_.size());
    const std::string type = f_.type(a.value).ToText();
    Json value = {{"name", Cut(a.name, kMostName)}, {"type", Cut(type, kMostText)}};
    Push({{"kind", "input"},
          {"op", Cut(a.name, kMostName)},
          {"title", Cut(type, kMostName)},
          {"out", Json::array({std::move(value)})}},
         {WidthFor(a.name, type), kPortHeight});
  }

  void AddPort(std::string_view kind, std::string_view name, uint32_t value,
               std::string_view what) {
    const std::string type = f_.type(value).ToText();
    Json node = {{"kind", kind},
                 {"op", Cut(name, kMostName)},
                 {"title", Cut(type, kMostName)},
                 {"in", Json::array({Operand(value, what)})}};
    Connect(value);
    Push(std::move(node), {WidthFor(name, type), kPortHeight});
  }

  // What a node reads: a variable, or what another box makes.
  Json Operand(uint32_t value, std::string_view role) {
    if (value == ir::kAbsent) return {{"name", "not given"}, {"role", role}};
    Json j = {{"type", Cut(f_.type(value).ToText(), kMostText)}, {"role", role}};
    if (const ir::Variable* v = f_.VariableOf(value)) {
      j["variable"] = weights_.Add(*v);
      j["name"] = Cut(v->name, kMostName);
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
      if (edges_[i].from == e.from && carried_[i] == value) return;
    edges_.push_back(e);
    carried_.push_back(value);
  }

  Json Attributes(const ir::Node& n) const {
    Json out = Json::array();
    for (const Field& field : n.op.def().fields)
      out.push_back({field.name, Cut(ir::FieldText(field, n.op.self()), kMostText), field.doc});
    return out;
  }

  void AddNode(const ir::Node& n) {
    const std::string from = n.from ? n.from->ToText() : "";
    Json in = Json::array(), out = Json::array(), bodies = Json::array();
    for (size_t i = 0; i < n.in.size(); ++i) in.push_back(Operand(n.in[i], std::to_string(i)));
    for (const ir::Late& late : n.late)
      in.push_back(Operand(late.value, n.op.def().fields[late.field].name));
    for (uint32_t v : n.in) Connect(v);
    for (const ir::Late& late : n.late) Connect(late.value);
    for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) {
      producer_[v] = static_cast<uint32_t>(boxes_.size());
      out.push_back({{"name", NameOf(v)}, {"type", Cut(f_.type(v).ToText(), kMostText)}});
    }
    for (const ir::Function* body : BodiesOf(n))
      if (const auto at = number_of_.find(body); at != number_of_.end())
        bodies.push_back(at->second);
    const std::string title = Cut(from.empty() ? NameOf(n.first_out) : from, kMostName);
    Json node = {{"kind", KindOf(n.op.def())},
                 {"op", n.op.name()},
                 {"title", title},
                 {"from", Cut(from, kMostText)},
                 {"pass", n.from ? Cut(n.from->pass, kMostName) : ""},
                 {"attributes", Attributes(n)},
                 {"formula", n.op.def().info.formula},
                 {"in", std::move(in)},
                 {"out", std::move(out)}};
    if (!bodies.empty()) node["bodies"] = std::move(bodies);
    Push(std::move(node), {WidthFor(n.op.name(), title), kBoxHeight});
  }

  void Push(Json node, LayoutBox box) {
    nodes_.push_back(std::move(node));
    boxes_.push_back(box);
  }

  static Json Points(const std::vector<LayoutPoint>& route) {
    Json out = Json::array();
    for (const LayoutPoint& p : route) {
      out.push_back(std::lround(p.x));
      out.push_back(std::lround(p.y));
    }
    return out;
  }

  Json Place(size_t left_out) {
    const Layout layout = LayOut(boxes_, edges_);
    for (size_t i = 0; i < boxes_.size(); ++i)
      nodes_[i]["box"] = {std::lround(layout.nodes[i].x), std::lround(layout.nodes[i].y),
                          std::lround(boxes_[i].width), std::lround(boxes_[i].height)};
    Json edges = Json::array();
    for (size_t e = 0; e < edges_.size(); ++e)
      edges.push_back({edges_[e].from, edges_[e].to, Cut(f_.type(carried_[e]).ToText(), kMostName),
                       Points(layout.routes[e])});
    return {{"name", Cut(f_.name(), kMostName)},
            {"nodes", std::move(nodes_)},
            {"edges", std::move(edges)},
            {"leftOut", left_out},
            {"size", {std::lround(layout.size.width), std::lround(layout.size.height)}}};
  }

  const ir::Function& f_;
  Weights& weights_;
  const absl::flat_hash_map<const ir::Function*, size_t>& number_of_;
  size_t most_;
  Json nodes_ = Json::array();
  std::vector<LayoutBox> boxes_;
  std::vector<LayoutEdge> edges_;
  std::vector<uint32_t> carried_;   // the value of each edge
  std::vector<uint32_t> producer_;  // by value: the box that makes it
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
  absl::flat_hash_map<const ir::Function*, size_t> number_of;
  for (const ir::Function* f : all) number_of.emplace(f, number_of.size());
  Weights weights;
  Json list = Json::array(), metadata = Json::array();
  size_t left = kMostNodes;
  for (size_t i = 0; i < all.size(); ++i) {
    Json f = FunctionData(*all[i], weights, number_of, left).Make();
    f["body"] = i >= functions.size();
    list.push_back(std::move(f));
    left -= std::min(left, all[i]->nodes().size());
  }
  for (const auto& [key, value] : page.metadata)
    metadata.push_back({Cut(key, kMostName), Cut(value, kMostText)});
  const Json data = {{"title", page.title},
                     {"version", FORGE_VERSION},
                     {"metadata", metadata},
                     {"functions", std::move(list)},
                     {"variables", weights.Take()}};
  return std::string(kViewerHead) + "<style>\n" + std::string(kViewerCss) + "</style>\n" +
         std::string(kViewerBody) + "<script type=\"application/json\" id=\"data\">" +
         ScriptSafe(data) + "</script>\n<script>\n" + std::string(kViewerJs) +
         "</script>\n</body>\n</html>\n";
}

}  // namespace forge::tools
