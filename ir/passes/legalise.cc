// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

// Decompositions of decompositions end here; none of ours nests deeper than three.
constexpr int kMaxDecompositions = 16;

// Each goes over all nodes.
struct LegaliseRound {
  const Target& target;
  std::vector<Refusal> refused = {};
  bool changed = false;

  std::optional<Values> operator()(Function& out, const Node& node, ValueSpan in,
                                   TypeSpan results) {
    Types types;
    for (const Value& v : in) types.push_back(v ? v.type() : Type());
    Verdict verdict = target.Supports({node.op, types, results});
    if (verdict) return std::nullopt;
    Values simpler;
    // Decompositions read the shapes of operands.
    if (node.runtime_attributes.empty() && AreRanked(types)) simpler = node.op.Decompose(out, in);
    if (simpler.empty()) {
      Refuse({std::string(node.op.name()), types, node.from ? node.from->ToText() : std::string(),
              verdict.text()});
      return std::nullopt;
    }
    changed = true;
    return simpler;
  }

  // Alike parts of one operator of the model are one refusal.
  void Refuse(Refusal r) {
    const bool known = std::any_of(refused.begin(), refused.end(), [&](const Refusal& other) {
      return !r.from.empty() && other.from == r.from && other.op == r.op && other.why == r.why;
    });
    if (!known) refused.push_back(std::move(r));
  }
};

absl::Status ErrorOf(const Target& target, std::span<const Refusal> refused) {
  std::string lines;
  for (const Refusal& r : refused) lines += "\n  " + r.ToText();
  return Unimplemented("{} cannot run {} of the model's operators:{}", target.name(),
                       refused.size(), lines);
}

}  // namespace

std::string Refusal::ToText() const {
  std::string types;
  for (const Type& t : in)
    types += (types.empty() ? "" : ", ") + (t ? t.ToText() : std::string("-"));
  return fmt::format("{}({}){}: {}", op, types, from.empty() ? "" : " from " + from, why);
}

absl::Status Legalise(const Function& in, Function& out, const Target& target,
                      std::vector<Refusal>* refused) {
  const Function* from = &in;
  std::unique_ptr<Function> between;
  for (int depth = 0; depth < kMaxDecompositions; ++depth) {
    LegaliseRound round{target};
    auto next = std::make_unique<Function>(in.name(), in.module());
    auto rule = [&](Function& f, const Node& node, ValueSpan operands) {
      Types results;
      for (uint16_t i = 0; i < node.outs; ++i) results.push_back(from->type(node.first_out + i));
      return round(f, node, operands, results);
    };
    FORGE_RETURN_IF_ERROR((Rewriter{.pass = "legalise"}.Run(*from, *next, rule)));
    if (!round.changed && !round.refused.empty()) {
      const absl::Status error = ErrorOf(target, round.refused);
      if (refused != nullptr) *refused = std::move(round.refused);
      return error;
    }
    if (!round.changed) return Rewriter{.pass = "legalise"}.Run(*next, out);
    between = std::move(next);
    from = between.get();
  }
  return Internal("{}: decompositions nest deeper than {}", target.name(), kMaxDecompositions);
}

}  // namespace forge::ir
