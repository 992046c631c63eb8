// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

// Decompositions of decompositions end here; none of ours nests deeper than three.
constexpr int kMaxDecompositions = 16;

std::string Describe(const Node& node, TypeSpan in, const Verdict& verdict) {
  std::string types;
  for (const Type& t : in)
    types += (types.empty() ? "" : ", ") + (t ? t.ToText() : std::string("-"));
  return fmt::format("{}({}){}: {}", node.op.name(), types,
                     node.from ? " from " + node.from->ToText() : std::string(), verdict.text());
}

struct Step {
  const Target& target;
  std::vector<std::string> refused;
  bool changed = false;

  std::optional<Values> operator()(Function& out, const Node& node, ValueSpan in,
                                   TypeSpan results) {
    Types types;
    for (const Value& v : in) types.push_back(v ? v.type() : Type());
    Verdict verdict = target.Supports({node.op, types, results});
    if (verdict) return std::nullopt;
    Values simpler;
    // Decompositions read the shapes of operands.
    if (node.op.def().decompose != nullptr && node.late.empty() && AreRanked(types))
      simpler = node.op.def().decompose(node.op.self(), out, in);
    if (simpler.empty()) {
      refused.push_back(Describe(node, types, verdict));
      return std::nullopt;
    }
    changed = true;
    return simpler;
  }
};

}  // namespace

absl::Status Legalise(const Function& in, Function& out, const Target& target) {
  const Function* from = &in;
  std::unique_ptr<Function> between;
  for (int depth = 0; depth < kMaxDecompositions; ++depth) {
    Step step{target, {}};
    auto next = std::make_unique<Function>(in.name(), in.module());
    auto rule = [&](Function& f, const Node& node, ValueSpan operands) {
      Types results;
      for (uint16_t i = 0; i < node.outs; ++i) results.push_back(from->type(node.first_out + i));
      return step(f, node, operands, results);
    };
    FORGE_RETURN_IF_ERROR((Rewriter{.pass = "legalise"}.Run(*from, *next, rule)));
    if (!step.changed && !step.refused.empty()) {
      std::string lines;
      for (const std::string& line : step.refused) lines += "\n  " + line;
      return Unimplemented("{} cannot run {} of the model's operators:{}", target.name(),
                           step.refused.size(), lines);
    }
    if (!step.changed) {
      auto copy = [](Function&, const Node&, ValueSpan) { return std::optional<Values>(); };
      return Rewriter{.pass = "legalise"}.Run(*next, out, copy);
    }
    between = std::move(next);
    from = between.get();
  }
  return Internal("{}: decompositions nest deeper than {}", target.name(), kMaxDecompositions);
}

}  // namespace forge::ir
