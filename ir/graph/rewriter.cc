// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/graph/copier.h"

namespace forge::ir {
namespace {

// For each value, whether a result, an update or an ordered node needs it.
std::vector<bool> LiveValues(const Function& f) {
  std::vector<bool> live(f.value_count());
  for (const auto& r : f.results()) live[r.value] = true;
  for (const auto& u : f.updates()) live[u.value] = true;
  for (size_t i = f.nodes().size(); i-- > 0;) {
    const Node& n = f.nodes()[i];
    bool wanted = HasEffects(n);
    for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) wanted |= live[v];
    if (!wanted) continue;
    for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) live[v] = true;
    for (uint32_t v : n.in)
      if (v != kAbsent) live[v] = true;
    for (const RuntimeAttribute& l : n.runtime_attributes) live[l.value] = true;
  }
  return live;
}

bool SameKind(const Type& wanted, const Type& got) {
  if (!wanted.is_tensor()) return true;
  return got.is_tensor() && got.dtype() == wanted.dtype() && got.rank() == wanted.rank();
}

// Nodes begin to end - 1, operands first and left to right, from those that no other of them reads:
// whatever order a formula's operands were evaluated in, which C++ leaves to the compiler. Effects
// keep the order in which they were added.
class FormulaOrder {
 public:
  FormulaOrder(const Function& f, uint32_t begin, uint32_t end)
      : f_(f), begin_(begin), placed_(end - begin) {}

  void AppendTo(std::vector<uint32_t>& order) {
    std::vector<bool> read(placed_.size());
    bool effects = false;
    for (uint32_t n = begin_; n < End(); ++n) {
      effects |= HasEffects(f_.nodes()[n]);
      for (uint32_t m : Operands(n)) read[m - begin_] = true;
    }
    for (uint32_t n = begin_; n < End(); ++n) {
      if (effects)
        order.push_back(n);
      else if (!read[n - begin_])
        Place(n, order);
    }
  }

 private:
  uint32_t End() const { return begin_ + static_cast<uint32_t>(placed_.size()); }

  // Those among the nodes that make the operands of node n.
  std::vector<uint32_t> Operands(uint32_t n) const {
    std::vector<uint32_t> out;
    const auto add = [&](uint32_t v) {
      if (v == kAbsent || f_.origin(v).kind != Function::Origin::kNode) return;
      if (const uint32_t m = f_.origin(v).index; m >= begin_) out.push_back(m);
    };
    for (uint32_t v : f_.nodes()[n].in) add(v);
    for (const RuntimeAttribute& l : f_.nodes()[n].runtime_attributes) add(l.value);
    return out;
  }

  void Place(uint32_t root, std::vector<uint32_t>& order) {
    std::vector<std::pair<uint32_t, bool>> left{{root, false}};  // node, and are its operands done
    while (!left.empty()) {
      auto [n, ready] = left.back();
      left.pop_back();
      if (placed_[n - begin_]) continue;
      if (ready) {
        placed_[n - begin_] = true;
        order.push_back(n);
        continue;
      }
      left.emplace_back(n, true);
      const std::vector<uint32_t> operands = Operands(n);
      for (auto m = operands.rbegin(); m != operands.rend(); ++m) left.emplace_back(*m, false);
    }
  }

  const Function& f_;
  uint32_t begin_;
  std::vector<bool> placed_;
};

// Nodes in the order of their formulas: what one rule made, or one node of the file, is a formula.
std::vector<uint32_t> OrderOfFormulas(const Function& f) {
  const auto count = static_cast<uint32_t>(f.nodes().size());
  std::vector<uint32_t> order;
  for (uint32_t begin = 0, end; begin < count; begin = end) {
    const Provenance* from = f.nodes()[begin].from.get();
    for (end = begin + 1; from && end < count && f.nodes()[end].from.get() == from;) ++end;
    FormulaOrder(f, begin, end).AppendTo(order);
  }
  return order;
}

class Rewrite {
 public:
  Rewrite(const Rewriter& how, const Function& in, Function& out)
      : how_(how), in_(in), out_(out), copy_(in, out, {.symbols = how.bind}) {}

  absl::Status Run(Rewriter::Rule rule) {
    FORGE_RETURN_IF_ERROR(in_.status());
    const std::vector<bool> live = LiveValues(in_);
    copy_.CopyArguments();
    for (const auto& r : in_.reads())
      if (live[r.value]) copy_[r.value];
    for (const Node& n : in_.nodes()) {
      if (!HasEffects(n) && !live[n.first_out]) continue;
      FORGE_RETURN_IF_ERROR(Named(RewriteNode(n, rule)));
    }
    return Named(copy_.Finish());
  }

 private:
  absl::Status Named(const absl::Status& s) const {
    return Annotate(
        s, how_.pass.empty() ? std::string() : fmt::format("{}: {}", how_.pass, in_.name()));
  }

  absl::Status RewriteNode(const Node& n, Rewriter::Rule rule) {
    std::optional<Values> replaced;
    {
      const Function::Scope scope(out_, MadeBy(how_.pass, {&n.from, 1}));
      replaced = rule(out_, n, copy_.OperandsOf(n));
    }
    if (!replaced) {
      copy_.CopyNode(n);
      return out_.status();
    }
    FORGE_RETURN_IF_ERROR(out_.status());
    FORGE_RETURN_IF_ERROR(CheckFit(n, *replaced));
    for (uint32_t i = 0; i < n.outs; ++i)
      if ((*replaced)[i]) copy_.Map(n.first_out + i, (*replaced)[i]);
    return absl::OkStatus();
  }

  absl::Status CheckFit(const Node& n, const Values& replaced) const {
    const std::string_view op = n.op.name();
    if (replaced.size() != n.outs)
      return Internal("{} has {} results, the rule gave {}", op, n.outs, replaced.size());
    for (uint32_t i = 0; i < n.outs; ++i) {
      const Value& v = replaced[i];
      if (!v && uses_[n.first_out + i] == 0) continue;
      if (v.fn != &out_) return Internal("{}: result {} is not of the new function", op, i);
      if (!SameKind(in_.type(n.first_out + i), v.type()))
        return Internal("{}: result {} was {}, the rule gave {}", op, i,
                        in_.type(n.first_out + i).ToText(), v.type().ToText());
    }
    return absl::OkStatus();
  }

  const Rewriter& how_;
  const Function& in_;
  Function& out_;
  std::vector<int> uses_ = in_.UseCounts();
  Copier copy_;
};

}  // namespace

absl::Status Rewriter::Run(const Function& in, Function& out, Rule rule) const {
  FORGE_RETURN_IF_ERROR(Rewrite(*this, in, out).Run(rule));
  const std::vector<uint32_t> order = OrderOfFormulas(out);
  if (!std::is_sorted(order.begin(), order.end())) out.Reorder(order);
  return absl::OkStatus();
}

absl::Status Rewriter::Run(const Function& in, Function& out) const {
  return Run(in, out, [](Function&, const Node&, ValueSpan) { return std::optional<Values>(); });
}

}  // namespace forge::ir
