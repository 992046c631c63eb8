// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/in_place.h"

#include <algorithm>

#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {
namespace {

bool IsWide(const Type& t) { return t.is_tensor() && BitWidth(t.dtype()) >= 32; }

// The nodes that a value is computed from, itself included.
std::vector<bool> SourcesOf(const Function& body, uint32_t value) {
  std::vector<bool> values(body.value_count()), nodes(body.nodes().size());
  values[value] = true;
  for (size_t i = body.nodes().size(); i-- > 0;) {
    const Node& node = body.nodes()[i];
    for (uint16_t k = 0; k < node.outs; ++k) nodes[i] = nodes[i] || values[node.first_out + k];
    if (!nodes[i]) continue;
    for (uint32_t v : node.in)
      if (v != kAbsent) values[v] = true;
  }
  return nodes;
}

// Are all readers of `value` among these nodes?
bool AreReaders(const Function& body, uint32_t value, const std::vector<bool>& nodes) {
  for (size_t i = 0; i < body.nodes().size(); ++i) {
    const Node& node = body.nodes()[i];
    if (!nodes[i] && std::ranges::find(node.in, value) != node.in.end()) return false;
  }
  return std::ranges::none_of(body.results(), [&](const auto& r) { return r.value == value; });
}

// Are the results of the region computed together, for one element after the other? Those of an
// anchor with several are not.
bool StoresTogether(const Function& body) {
  return body.results().size() == 1 ||
         std::ranges::all_of(body.nodes(), [](const Node& node) { return node.outs == 1; });
}

}  // namespace

bool StaysInPlace(const Function& body, uint32_t value) {
  std::vector<bool> reached(body.value_count());
  reached[value] = true;
  for (const Node& node : body.nodes()) {
    bool reads = false;
    for (uint32_t v : node.in) reads |= v != kAbsent && reached[v];
    if (!reads) continue;
    if (node.op.def().scalar == nullptr ||
        !(body.type(node.first_out).shape() == body.type(value).shape()))
      return false;
    reached[node.first_out] = true;
  }
  return true;
}

std::vector<Overwrite> OverwritableArguments(const Function& body) {
  std::vector<Overwrite> out;
  if (!StoresTogether(body)) return out;
  std::vector<uint32_t> staying;  // arguments
  for (uint32_t i = 0; i < body.arguments().size(); ++i) {
    const uint32_t argument = body.arguments()[i].value;
    if (IsWide(body.type(argument)) && StaysInPlace(body, argument)) staying.push_back(i);
  }
  for (uint32_t k = 0; !staying.empty() && k < body.results().size(); ++k) {
    const uint32_t result = body.results()[k].value;
    const std::vector<bool> sources = SourcesOf(body, result);
    for (const uint32_t i : staying) {
      const uint32_t argument = body.arguments()[i].value;
      if (body.type(argument) == body.type(result) && AreReaders(body, argument, sources))
        out.push_back({i, k});
    }
  }
  return out;
}

std::optional<InPlaceUpdate> UpdateOf(const Function& body) {
  if (body.results().size() != 1) return std::nullopt;
  const Function::Origin& origin = body.origin(body.results()[0].value);
  if (origin.kind != Function::Origin::kNode) return std::nullopt;
  const Node& node = body.nodes()[origin.index];
  const std::span<const Alias> aliases = node.op.def().info.in_place;
  if (aliases.empty() || node.outs != 1) return std::nullopt;
  const uint32_t value = node.in[static_cast<size_t>(aliases[0].input)];
  const Function::Origin& from = body.origin(value);
  if (from.kind != Function::Origin::kArgument || body.UseCounts()[value] != 1) return std::nullopt;
  return InPlaceUpdate{from.index, body.type(node.in[static_cast<size_t>(aliases[0].written)])};
}

bool HasAnchor(const Function& body) {
  return std::any_of(body.nodes().begin(), body.nodes().end(), [](const Node& n) {
    return n.op.def().scalar == nullptr && n.op.def().map == nullptr;
  });
}

std::vector<Overwrite> OverwritableOperands(const AnyOp& op, TypeSpan in, TypeSpan out) {
  std::vector<Overwrite> found;
  if (const Fused* fused = op.As<Fused>()) {
    if (!HasAnchor(*fused->body)) found = OverwritableArguments(*fused->body);
  } else if (op.def().scalar != nullptr && IsWide(out[0])) {
    for (uint32_t i = 0; i < in.size(); ++i) found.push_back({i, 0});
  }
  std::erase_if(found, [&](const Overwrite& o) { return in[o.operand] != out[o.result]; });
  return found;
}

}  // namespace forge::ir
