// SPDX-License-Identifier: Apache-2.0
#include "ir/function_copier.h"

namespace forge::ir {
namespace {

// For each value, whether a result, an update or an ordered node needs it.
std::vector<bool> LiveValues(const Function& f) {
  std::vector<bool> live(f.value_count());
  for (const auto& r : f.results()) live[r.value] = true;
  for (const auto& u : f.updates()) live[u.value] = true;
  for (size_t i = f.nodes().size(); i-- > 0;) {
    const Node& n = f.nodes()[i];
    bool wanted = n.op.def().info.ordered || n.outs == 0;
    for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) wanted |= live[v];
    if (!wanted) continue;
    for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) live[v] = true;
    for (uint32_t v : n.in)
      if (v != kAbsent) live[v] = true;
    for (const Late& l : n.late) live[l.value] = true;
  }
  return live;
}

bool SameKind(const Type& wanted, const Type& got) {
  if (!wanted.is_tensor()) return true;
  return got.is_tensor() && got.dtype() == wanted.dtype() && got.rank() == wanted.rank();
}

class Rewrite {
 public:
  Rewrite(const Rewriter& how, const Function& in, Function& out)
      : how_(how), in_(in), out_(out), mapped_(in.value_count()) {}

  absl::Status Run(Rewriter::Rule rule) {
    FORGE_RETURN_IF_ERROR(in_.status());
    const std::vector<bool> live = LiveValues(in_);
    for (const auto& a : in_.arguments()) Map(a.value, out_.Argument(a.name, BoundType(a.value)));
    for (const auto& r : in_.reads())
      if (live[r.value]) Map(r.value, FunctionCopier::ReadAs(out_, r.variable, BoundType(r.value)));
    for (const Node& n : in_.nodes()) {
      if (n.outs > 0 && !live[n.first_out]) continue;
      FORGE_RETURN_IF_ERROR(RewriteNode(n, rule));
    }
    for (const auto& r : in_.results()) out_.Return(r.name, mapped_[r.value]);
    for (const auto& u : in_.updates()) out_.Store(u.variable, mapped_[u.value]);
    return Named(out_.status());
  }

 private:
  Type BoundType(uint32_t value) const {
    return how_.bind != nullptr ? in_.type(value).Bind(*how_.bind) : in_.type(value);
  }

  absl::Status Named(const absl::Status& s) const {
    return Annotate(
        s, how_.pass.empty() ? std::string() : fmt::format("{}: {}", how_.pass, in_.name()));
  }

  void Map(uint32_t from, Value to) {
    mapped_[from] = to;
    out_.SetName(to, in_.NameOf(from));
  }

  absl::Status RewriteNode(const Node& n, Rewriter::Rule rule) {
    Values in;
    for (uint32_t v : n.in) in.push_back(v != kAbsent ? mapped_[v] : Value());
    for (const Late& l : n.late) in.push_back(mapped_[l.value]);
    std::optional<Values> replaced;
    {
      const Function::Scope scope(out_, MadeBy(how_.pass, {&n.from, 1}));
      replaced = rule(out_, n, in);
    }
    if (!replaced) {
      const Function::Scope scope(out_, n.from);
      replaced = Copy(n, in);
    }
    FORGE_RETURN_IF_ERROR(Named(out_.status()));
    FORGE_RETURN_IF_ERROR(Named(CheckFit(n, *replaced)));
    for (uint32_t i = 0; i < n.outs; ++i) Map(n.first_out + i, (*replaced)[i]);
    return absl::OkStatus();
  }

  Values Copy(const Node& n, ValueSpan in) {
    const AnyOp op = how_.bind != nullptr ? n.op.Bind(*how_.bind) : n.op;
    std::vector<Function::LateField> late;
    for (size_t i = 0; i < n.late.size(); ++i)
      late.push_back({op.def().fields[n.late[i].field].name, in[n.in.size() + i]});
    Values made = out_.AddLate(op, in.first(n.in.size()), late);
    for (uint32_t i = 0; i < n.outs && out_.status().ok(); ++i)
      if (const EncodingRef& e = in_.type(n.first_out + i).encoding()) out_.SetEncoding(made[i], e);
    return made;
  }

  absl::Status CheckFit(const Node& n, const Values& replaced) const {
    const std::string_view op = n.op.name();
    if (replaced.size() != n.outs)
      return Internal("{} has {} results, the rule gave {}", op, n.outs, replaced.size());
    for (uint32_t i = 0; i < n.outs; ++i) {
      const Value& v = replaced[i];
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
  Values mapped_;
};

}  // namespace

absl::Status Rewriter::Run(const Function& in, Function& out, Rule rule) const {
  return Rewrite(*this, in, out).Run(rule);
}

}  // namespace forge::ir
