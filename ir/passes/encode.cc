// SPDX-License-Identifier: Apache-2.0
// Layout assignment: one walk in order, each node choosing the cheapest of what its target offers
// given how its operands already lie.
#include <map>

#include "ir/graph/copier.h"
#include "ir/ops/compiler/relayout.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

bool SameEncoding(const EncodingRef& a, const EncodingRef& b) {
  if (!a || !b) return !a && !b;
  return a->name() == b->name();
}

class Encoder {
 public:
  Encoder(const Function& in, Function& out, const Target& target)
      : in_(in), out_(out), target_(target), copy_(in, out) {}

  absl::Status Run() {
    copy_.CopyArguments();
    for (const Node& node : in_.nodes()) FORGE_RETURN_IF_ERROR(Place(node));
    // What leaves the function is as the function says.
    for (const auto& r : in_.results())
      out_.Return(r.name, As(copy_[r.value], in_.type(r.value).encoding()));
    for (const auto& u : in_.updates())
      out_.Store(u.variable, As(copy_[u.value], u.variable->type.encoding()));
    return out_.status();
  }

 private:
  bool IsConstant(uint32_t value) const {
    const Variable* v = in_.VariableOf(value);
    return v && v->role == Variable::Role::kConstant;
  }

  // Seconds of bringing the operands into the encodings of a choice. Constants are packed once, at
  // load.
  double RelayoutSeconds(const Node& node, const EncodingChoice& choice) {
    double total = 0;
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (node.in[i] == kAbsent || IsConstant(node.in[i])) continue;
      const Type& have = copy_[node.in[i]].type();
      if (SameEncoding(have.encoding(), choice.in[i])) continue;
      const Types from{have}, to{have.With(choice.in[i])};
      total += target_.Seconds({Relayout{.to = to[0]}, from, to});
    }
    return total;
  }

  // The value under another encoding, made once.
  Value As(Value v, const EncodingRef& encoding) {
    if (!v || SameEncoding(v.type().encoding(), encoding)) return v;
    auto key = std::make_pair(v.id, std::string(encoding ? encoding->name() : ""));
    if (auto it = relaid_.find(key); it != relaid_.end()) return it->second;
    Value made = out_(Relayout{.to = v.type().With(encoding)}, {v});
    // And back again, for whoever wants it as it was.
    if (out_.status().ok())
      relaid_[{made.id, std::string(v.type().encoding() ? v.type().encoding()->name() : "")}] = v;
    return relaid_[key] = made;
  }

  absl::Status Place(const Node& node) {
    Function::Scope scope(out_, node.from);
    const Types in = in_.TypesOf(node.in);
    Types results;
    for (uint16_t k = 0; k < node.outs; ++k) results.push_back(in_.type(node.first_out + k));
    const std::vector<EncodingChoice> choices = target_.Encodings({node.op, in, results});
    const EncodingChoice* best = nullptr;
    double best_seconds = 0;
    for (const EncodingChoice& c : choices) {
      const double seconds = c.seconds + RelayoutSeconds(node, c);
      if (best && seconds >= best_seconds) continue;
      best = &c;
      best_seconds = seconds;
    }
    Values operands;
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (node.in[i] == kAbsent)
        operands.emplace_back();
      else
        operands.push_back(As(copy_[node.in[i]], best ? best->in[i] : in[i].encoding()));
    }
    Values made = out_.Add(node.op, operands);
    FORGE_RETURN_IF_ERROR(out_.status());
    for (size_t k = 0; k < made.size(); ++k) {
      if (best) out_.SetEncoding(made[k], best->out[k]);
      copy_.Map(node.first_out + static_cast<uint32_t>(k), made[k]);
    }
    return absl::OkStatus();
  }

  const Function& in_;
  Function& out_;
  const Target& target_;
  Copier copy_;
  std::map<std::pair<uint32_t, std::string>, Value> relaid_;
};

}  // namespace

absl::Status AssignEncodings(const Function& in, Function& out, const Target& target) {
  return Encoder(in, out, target).Run();
}

}  // namespace forge::ir
