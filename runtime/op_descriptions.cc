// SPDX-License-Identifier: Apache-2.0
#include "runtime/op_descriptions.h"

#include <nlohmann/json.hpp>

#include "ir/op/attributes.h"

namespace forge {
namespace {

std::string_view KindOfAttribute(const Field& f) {
  static constexpr std::string_view kNames[] = {"bool",   "int",      "float",  "string", "ints",
                                                "floats", "dtype",    "choice", "dim",    "dims",
                                                "type",   "function", "number"};
  return kNames[static_cast<size_t>(f.kind)];
}

nlohmann::json AttributesOf(const ir::OpDef& def) {
  nlohmann::json out = nlohmann::json::array();
  if (def.fields.empty()) return out;
  const auto defaults = def.make(nullptr);
  for (const Field& f : def.fields) {
    nlohmann::json& a = out.emplace_back();
    a["name"] = f.name;
    a["type"] = KindOfAttribute(f);
    a["default"] = ir::FieldText(f, defaults.get());
    if (f.kind == FieldKind::kEnum) a["choices"] = ir::ChoicesOf(f);
  }
  return out;
}

}  // namespace

std::string OpDescriptions() {
  nlohmann::json out = nlohmann::json::array();
  for (const ir::OpDef* def : ir::AllOps())
    out.push_back({{"name", def->info.name},
                   {"inputs", def->info.inputs},
                   {"outputs", def->info.outputs},
                   {"attributes", AttributesOf(*def)}});
  return out.dump();
}

}  // namespace forge
