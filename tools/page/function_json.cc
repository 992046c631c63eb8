// SPDX-License-Identifier: Apache-2.0
#include "tools/page/function_json.h"

#include <nlohmann/json.hpp>

#include "ir/op/attributes.h"

namespace forge::tools {
namespace {

using Json = nlohmann::json;

Json NodeJson(const ir::Function& f, const ir::Node& n) {
  Json attributes = Json::object(), types = Json::array(), in = Json::array(), out = Json::array(),
       runtime = Json::object(), names = Json::array();
  for (const Field& field : n.op.def().fields)
    attributes[std::string(field.name)] = ir::FieldText(field, n.op.self());
  for (const uint32_t v : n.in) in.push_back(v == ir::kAbsent ? Json() : Json(v));
  for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) {
    out.push_back(v);
    types.push_back(f.type(v).ToText());
    names.push_back(std::string(f.NameOf(v)));
  }
  for (const ir::RuntimeAttribute& l : n.runtime_attributes)
    runtime[std::string(n.op.def().fields[l.field].name)] = l.value;
  return {{"op", n.op.ToText()},
          {"name", std::string(n.op.name())},
          {"attributes", attributes},
          {"types", types},
          {"in", in},
          {"out", out},
          {"runtime", runtime},
          {"names", names},
          {"from", n.from ? n.from->ToText() : ""}};
}

}  // namespace

Json FunctionJson(const ir::Function& f) {
  Json nodes = Json::array(), inputs = Json::array(), outputs = Json::array(),
       updates = Json::array(), variables = Json::array();
  const auto port = [&](const std::string& name, uint32_t value) {
    return Json{{"name", name}, {"type", f.type(value).ToText()}, {"value", value}};
  };
  for (const ir::Node& n : f.nodes()) nodes.push_back(NodeJson(f, n));
  for (const auto& a : f.arguments()) inputs.push_back(port(a.name, a.value));
  for (const auto& r : f.results()) outputs.push_back(port(r.name, r.value));
  for (const auto& u : f.updates()) updates.push_back(port(u.variable->name, u.value));
  for (const auto& r : f.reads())
    variables.push_back({{"name", r.variable->name}, {"value", r.value}});
  return {{"name", f.name()},   {"inputs", inputs},       {"outputs", outputs},
          {"updates", updates}, {"variables", variables}, {"nodes", nodes}};
}

}  // namespace forge::tools
