// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/in_place.h"

#include <algorithm>

#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {
namespace {

bool IsWide(const Type& t) { return t.is_tensor() && BitWidth(t.dtype()) >= 32; }

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

std::vector<uint32_t> OverwritableArguments(const Function& body) {
  std::vector<uint32_t> out;
  if (body.results().size() != 1) return out;
  const Type& result = body.type(body.results()[0].value);
  for (uint32_t i = 0; IsWide(result) && i < body.arguments().size(); ++i) {
    const uint32_t argument = body.arguments()[i].value;
    if (body.type(argument) == result && StaysInPlace(body, argument)) out.push_back(i);
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

std::vector<uint32_t> OverwritableOperands(const AnyOp& op, TypeSpan in, const Type& out) {
  std::vector<uint32_t> operands;
  if (const Fused* fused = op.As<Fused>()) {
    if (!HasAnchor(*fused->body)) operands = OverwritableArguments(*fused->body);
  } else if (op.def().scalar != nullptr && IsWide(out)) {
    for (uint32_t i = 0; i < in.size(); ++i) operands.push_back(i);
  }
  std::erase_if(operands, [&](uint32_t i) { return in[i] != out; });
  return operands;
}

}  // namespace forge::ir
