// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/keys.h"

#include <xxhash.h>

namespace forge {
namespace {

// Longer keys are of no use: this one is never met twice by chance.
std::string Hashed(std::string_view text) {
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

std::string TypesText(ir::TypeSpan types) {
  std::string out;
  for (const ir::Type& t : types) out += "|" + (t ? t.ToText() : std::string("-"));
  return out;
}

}  // namespace

std::string KeyOf(const ir::AnyOp& op, ir::TypeSpan in, ir::TypeSpan out) {
  return KeyOf(op) + TypesText(in) + ">" + TypesText(out);
}

void VariableKeys::AddComputed(const ir::Module& owner, const ir::Function& load) {
  std::vector<std::string> keys(load.value_count());
  for (const auto& r : load.reads()) keys[r.value] = Of(*r.variable);
  for (const ir::Node& n : load.nodes()) {
    ir::Types out;
    for (uint16_t k = 0; k < n.outs; ++k) out.push_back(load.type(n.first_out + k));
    std::string text = KeyOf(n.op, load.TypesOf(n.in), out);
    for (uint32_t v : n.in) text += "|" + (v == ir::kAbsent ? std::string("-") : keys[v]);
    const std::string key = Hashed(text);
    for (uint16_t k = 0; k < n.outs; ++k)
      keys[n.first_out + k] = fmt::format("computed {} {}", key, k);
  }
  for (const auto& r : load.results()) {
    const ir::Variable* v = owner.FindVariable(r.name);
    FORGE_CHECK(v != nullptr);
    computed_[v] = keys[r.value];
  }
}

std::string VariableKeys::Of(const ir::Variable& v) const {
  if (const auto at = computed_.find(&v); at != computed_.end()) return at->second;
  if (v.role != ir::Variable::Role::kConstant) return "named " + v.name;
  if (!v.init) return "zeros " + v.type.ToText();
  std::string key = fmt::format("stored {} {} {} {}", fmt::ptr(v.init->bytes.data()),
                                v.init->bytes.size(), v.init->whole.ToText(), v.type.ToText());
  for (int64_t b : v.init->begin) key += fmt::format(",{}", b);
  return key;
}

}  // namespace forge
