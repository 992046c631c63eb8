// SPDX-License-Identifier: Apache-2.0
#include "ir/text/key.h"

namespace forge::ir {

std::string KeyOf(const Function& f) {
  std::string out = "(";
  auto type = [&](uint32_t v) { return f.type(v).ToText(); };
  for (const auto& a : f.arguments()) out += fmt::format("%{}: {},", a.value, type(a.value));
  out += ")";
  for (const auto& r : f.reads()) out += fmt::format("@{} %{};", r.variable->name, r.value);
  for (const Node& n : f.nodes()) {
    out += fmt::format("%{} = {}", n.first_out, KeyOf(n.op));
    for (uint32_t v : n.in) out += v == kAbsent ? " _" : fmt::format(" %{}", v);
    for (const RuntimeAttribute& l : n.runtime_attributes)
      out += fmt::format(" {}=%{}", l.field, l.value);
    for (uint16_t k = 0; k < n.outs; ++k) out += " " + type(n.first_out + k);
    out += ";";
  }
  for (const auto& r : f.results()) out += fmt::format("return %{};", r.value);
  for (const auto& u : f.updates()) out += fmt::format("@{} = %{};", u.variable->name, u.value);
  return out;
}

std::string KeyOf(const AnyOp& op) {
  const OpDef& def = op.def();
  std::shared_ptr<void> plain;
  std::string bodies;
  for (const Field& f : def.fields) {
    if (f.kind != FieldKind::kFunction) continue;
    if (!plain) plain = def.make(op.self());
    auto& body = *static_cast<Function**>(f.at(plain.get()));
    bodies += body == nullptr ? "{}" : "{" + KeyOf(*body) + "}";
    body = nullptr;
  }
  return plain ? AnyOp(def, plain).ToText() + bodies : op.ToText();
}

}  // namespace forge::ir
