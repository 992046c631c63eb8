// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/resolve.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "formats/onnx/deferred.h"
#include "ir/graph/copier.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/control/bind_symbol.h"
#include "ir/ops/control/deferred.h"
#include "ir/ops/control/if.h"
#include "ir/ops/control/loop.h"
#include "ir/passes/constant_table.h"
#include "ir/passes/passes.h"

namespace forge {
namespace {

using ir::Function;
using ir::HostValue;
using ir::Node;
using ir::Value;
using ir::Values;

constexpr size_t kMaxHostNodes = 1024;

bool IsControl(const ir::AnyOp& op) {
  return op.Is<ir::If>() || op.Is<ir::Loop>() || op.Is<ir::Deferred>() || op.Is<ir::BindSymbol>();
}

bool IsKnown(const ir::Type& t) {
  return t.is_tensor() || t.kind() == ir::Type::Kind::kSequence ||
         t.kind() == ir::Type::Kind::kOptional;
}

// A host step, or an op that moves or compares strings.
bool RunsOnHost(const Function& f, const Node& node) {
  if (node.op.def().info.host) return true;
  if (IsControl(node.op)) return false;
  return std::ranges::any_of(node.in,
                             [&](uint32_t v) { return v != ir::kAbsent && IsHostType(f.type(v)); });
}

class Resolver {
 public:
  Resolver(ir::Module& m, Function& out, ir::Bindings& bindings)
      : out_(out), bindings_(bindings), constants_(m, out) {}

  absl::Status Run(const Function& in, std::span<const ResolveArgument> arguments) {
    ir::Copier copy(in, out_, {.symbols = &bindings_});
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Function::Input& input = in.arguments()[i];
      const ResolveArgument& a = arguments[i];
      copy.Map(input.value, a.value != nullptr ? constants_.Add(*a.value, input.name)
                                               : out_.Argument(input.name, a.type));
    }
    FORGE_RETURN_IF_ERROR(VisitAll(in, copy));
    for (const Function::Result& r : in.results()) out_.Return(r.name, copy[r.value]);
    if (!in.updates().empty())
      return Unimplemented("a function whose types depend on values changes '{}'",
                           in.updates()[0].variable->name);
    return out_.status();
  }

  static absl::StatusOr<Resolved> Finish(Function& f) {
    Resolved resolved{.function = &f};
    absl::flat_hash_set<uint32_t> seen, made;  // made: by calls
    bool symbols_are_known = true;             // that bodies may mention
    const Node* waiting = nullptr;
    for (const Node& node : f.nodes()) {
      if (f.type(node.first_out).kind() != ir::Type::Kind::kUnknown) continue;
      std::vector<uint32_t> numbers = NumbersOf(node);
      const bool calls = numbers.empty() && (node.op.Is<ir::Loop>() || RunsOnHost(f, node));
      symbols_are_known &= !node.op.Is<ir::BindSymbol>();
      if (!OperandsAreKnown(f, node, calls ? &made : nullptr)) continue;
      if (node.op.Is<ir::Loop>() && !symbols_are_known) continue;
      if (calls) {
        resolved.calls.push_back(&node);
        for (uint32_t k = 0; k < node.outs; ++k) made.insert(node.first_out + k);
        continue;
      }
      if (numbers.empty() && !node.op.is_bound()) {
        waiting = &node;  // for a symbol
        continue;
      }
      std::erase_if(numbers, [&](uint32_t v) { return f.VariableOf(v) != nullptr; });
      if (numbers.empty())  // to read constants would tell nothing new
        return InvalidArgument("{}: its types depend on constants that cannot be read",
                               node.from != nullptr ? node.from->ToText() : node.op.name());
      for (const uint32_t v : numbers)
        if (seen.insert(v).second) resolved.numbers.push_back(v);
    }
    if (waiting != nullptr && resolved.complete())
      return InvalidArgument("{}: nothing binds a symbol of it", waiting->op.ToText());
    return resolved;
  }

 private:
  absl::Status VisitAll(const Function& in, ir::Copier& copy) {
    for (const Node& node : in.nodes()) {
      const Function::Scope scope(out_, node.from);
      const absl::Status s = Visit(copy, node);
      if (!s.ok()) return node.from != nullptr ? Annotate(s, node.from->ToText()) : s;
      FORGE_RETURN_IF_ERROR(out_.status());
    }
    return absl::OkStatus();
  }

  absl::Status Visit(ir::Copier& copy, const Node& node) {
    const Values in = copy.OperandsOf(node);
    for (const Value& v : in)
      if (v && !IsKnown(v.type())) return Hold(copy, node, node.op);
    if (node.op.def().info.host) return Hold(copy, node, node.op);
    if (const auto* deferred = node.op.As<ir::Deferred>()) return Build(copy, node, *deferred, in);
    if (const auto* branch = node.op.As<ir::If>()) return Choose(copy, node, *branch, in);
    if (node.op.Is<ir::Loop>()) return Hold(copy, node, node.op.Bind(bindings_));
    if (const auto* bind = node.op.As<ir::BindSymbol>()) return BindTo(copy, node, *bind, in[0]);
    ir::AnyOp op = node.op.Bind(bindings_);
    if (!op.is_bound()) return Hold(copy, node, node.op);
    if (!node.runtime_attributes.empty()) {
      FORGE_ASSIGN_OR_RETURN(
          const std::optional<ir::AnyOp> filled,
          constants_.Filled(node, op, ir::ValueSpan(in).subspan(node.in.size())));
      if (!filled) return Hold(copy, node, op);
      op = *filled;
    }
    const ir::ValueSpan operands = ir::ValueSpan(in).first(node.in.size());
    if (std::ranges::any_of(operands, [](Value v) { return v && IsHostType(v.type()); }))
      return Define(copy, node, out_.Add(op, operands));  // see WithHostSteps
    if (const std::optional<Values> made = Evaluated(op, operands))
      return Define(copy, node, *made);
    return Define(copy, node, Known(out_.Add(op, operands)));
  }

  static absl::Status Hold(ir::Copier& copy, const Node& node, const ir::AnyOp& op) {
    copy.CopyUntyped(node, op);
    return absl::OkStatus();
  }

  absl::Status Define(ir::Copier& copy, const Node& node, const Values& made) const {
    FORGE_RETURN_IF_ERROR(out_.status());
    if (made.size() != node.outs)
      return Internal("{} has {} results in place of {}", node.op.name(), made.size(), node.outs);
    for (uint16_t k = 0; k < node.outs; ++k)
      if (made[k]) copy.Map(node.first_out + k, made[k]);
    return absl::OkStatus();
  }

  absl::Status Build(ir::Copier& copy, const Node& node, const ir::Deferred& deferred,
                     const Values& in) {
    FORGE_ASSIGN_OR_RETURN(DeferredResult result,
                           BuildDeferred(deferred, out_, in, constants_.contents()));
    FORGE_RETURN_IF_ERROR(out_.status());
    if (result.status.ok()) return Define(copy, node, Known(std::move(result.values)));
    if (result.reads.empty()) return result.status;
    ir::Deferred again = deferred;
    again.reads = result.reads;
    return Hold(copy, node, again);
  }

  absl::Status Choose(ir::Copier& copy, const Node& node, const ir::If& branch, const Values& in) {
    const std::optional<HostValue> condition = constants_.HostOf(in[0]);
    if (!condition) return Hold(copy, node, branch);
    if (condition->elements() != 1)
      return InvalidArgument("the condition has {} elements", condition->elements());
    const Function& body = condition->i64(0) != 0 ? *branch.yes : *branch.no;
    if (body.arguments().size() + 1 != in.size())
      return InvalidArgument("the body {} takes {} captures, not {}", body.name(),
                             body.arguments().size(), in.size() - 1);
    ir::Copier inner(body, out_, {.symbols = &bindings_});
    for (size_t i = 0; i < body.arguments().size(); ++i)
      inner.Set(body.arguments()[i].value, in[i + 1]);
    FORGE_RETURN_IF_ERROR(VisitAll(body, inner));
    Values made;
    for (const Function::Result& r : body.results()) made.push_back(inner[r.value]);
    return Define(copy, node, made);
  }

  absl::Status BindTo(ir::Copier& copy, const Node& node, const ir::BindSymbol& bind,
                      Value number) {
    const std::optional<HostValue> known = constants_.HostOf(number);
    if (!known) return Hold(copy, node, bind);
    FORGE_RETURN_IF_ERROR(ir::BindDim(bind.symbol, known->i64(0), bindings_));
    return Define(copy, node, {number});
  }

  // Results computed here; nullopt where they are not.
  std::optional<Values> Evaluated(const ir::AnyOp& op, ir::ValueSpan in) {
    ir::Types types;
    for (const Value& v : in) types.push_back(v.type());
    const absl::StatusOr<ir::Types> results = op.Infer(types);
    return results.ok() ? constants_.Evaluated(op, in, *results) : std::nullopt;
  }

  // The same values, as constants where they are known by now.
  Values Known(Values made) {
    for (Value& v : made) {
      if (!v || !out_.status().ok() || !IsKnown(v.type()) || out_.VariableOf(v.id) != nullptr)
        continue;
      if (const Value constant = Computed(v)) v = constant;
    }
    return made;
  }

  // What nodes compute from constants and extents; absent where it is not known.
  Value Computed(const Value& v) {
    if (!ir::IsSmallConstant(v.type())) return {};
    if (const std::optional<Value> numbers = constants_.FromContents(v)) return *numbers;
    const Function::Origin& origin = out_.origin(v.id);
    if (origin.kind != Function::Origin::kNode) return {};
    const Node& node = out_.nodes()[origin.index];
    Values in;
    for (const uint32_t id : node.in) {
      Value operand = id == ir::kAbsent ? Value() : out_.value(id);
      if (operand && !constants_.HostOf(operand)) {
        operand = Computed(operand);
        if (!operand) return {};
      }
      in.push_back(operand);
    }
    const std::optional<Values> all = Evaluated(node.op, in);
    return all ? (*all)[v.id - node.first_out] : Value();
  }

  // made: values that count as known; may be null
  static bool OperandsAreKnown(const Function& f, const Node& node,
                               const absl::flat_hash_set<uint32_t>* made) {
    for (const uint32_t v : node.in)
      if (v != ir::kAbsent && !IsKnown(f.type(v)) && (made == nullptr || !made->contains(v)))
        return false;
    return std::ranges::all_of(node.runtime_attributes,
                               [&](const auto& a) { return IsKnown(f.type(a.value)); });
  }

  static std::vector<uint32_t> NumbersOf(const Node& node) {
    std::vector<uint32_t> out;
    for (const ir::RuntimeAttribute& a : node.runtime_attributes) out.push_back(a.value);
    if (node.op.Is<ir::If>() || node.op.Is<ir::BindSymbol>()) out.push_back(node.in[0]);
    if (const auto* deferred = node.op.As<ir::Deferred>())
      for (const int64_t i : deferred->reads)
        if (static_cast<size_t>(i) < node.in.size() &&
            node.in[static_cast<size_t>(i)] != ir::kAbsent)
          out.push_back(node.in[static_cast<size_t>(i)]);
    return out;
  }

  Function& out_;
  ir::Bindings& bindings_;
  ir::ConstantTable constants_;
};

// The same function, where what host steps compute, and what depends on it, has no type yet.
absl::StatusOr<std::unique_ptr<Function>> WithHostSteps(ir::Module& m,
                                                        std::unique_ptr<Function> f) {
  const auto typed = [&](const Node& node) {
    return IsKnown(f->type(node.first_out)) && RunsOnHost(*f, node);
  };
  if (std::ranges::none_of(f->nodes(), typed)) return f;
  auto out = std::make_unique<Function>(f->name(), &m);
  ir::Copier copy(*f, *out);
  copy.CopyArguments();
  for (const Node& node : f->nodes()) {
    const Values in = copy.OperandsOf(node);
    const bool waits = RunsOnHost(*f, node) || std::ranges::any_of(in, [](const Value& v) {
                         return v && !IsKnown(v.type());
                       });
    if (waits)
      copy.CopyUntyped(node, node.op);
    else
      copy.CopyNode(node);
  }
  FORGE_RETURN_IF_ERROR(copy.Finish());
  return out;
}

// Calls `visit` with each value that `roots` depend on, operands after users; it returns whether to
// go on to the operands.
void WalkBack(const Function& f, std::span<const uint32_t> roots,
              absl::FunctionRef<bool(uint32_t value)> visit) {
  std::vector<uint32_t> stack(roots.begin(), roots.end());
  absl::flat_hash_set<uint32_t> seen(roots.begin(), roots.end());
  while (!stack.empty()) {
    const uint32_t v = stack.back();
    stack.pop_back();
    if (!visit(v) || f.origin(v).kind != Function::Origin::kNode) continue;
    const Node& node = f.nodes()[f.origin(v).index];
    const auto push = [&](uint32_t operand) {
      if (operand != ir::kAbsent && seen.insert(operand).second) stack.push_back(operand);
    };
    for (const uint32_t operand : node.in) push(operand);
    for (const ir::RuntimeAttribute& a : node.runtime_attributes) push(a.value);
  }
}

// The results of a function, and what it will know symbols by.
std::vector<uint32_t> RootsOf(const Function& f) {
  std::vector<uint32_t> roots;
  for (const Function::Result& r : f.results())
    if (std::ranges::find(roots, r.value) == roots.end()) roots.push_back(r.value);
  for (const Node& node : f.nodes())
    if (node.op.Is<ir::BindSymbol>()) roots.push_back(node.first_out);
  return roots;
}

// roots: what the nodes that are kept lead to
absl::Status ExtractNodes(ir::Module& m, const std::string& function,
                          std::span<const uint32_t> arguments, std::span<const uint32_t> roots,
                          std::span<const Function::Result> results) {
  const Function& in = *m.Find(function);
  auto out = std::make_unique<Function>(function, &m);
  ir::Copier copy(in, *out);
  const absl::flat_hash_set<uint32_t> given(arguments.begin(), arguments.end());
  for (const uint32_t v : arguments)
    copy.Map(v, out->Argument(fmt::format("value.{}", v), in.type(v)));
  absl::flat_hash_set<uint32_t> needed;
  WalkBack(in, roots, [&](uint32_t v) {
    if (given.contains(v)) return false;
    if (in.origin(v).kind == Function::Origin::kNode) needed.insert(in.origin(v).index);
    return true;
  });
  for (uint32_t n = 0; n < in.nodes().size(); ++n) {
    if (!needed.contains(n)) continue;
    const Node& node = in.nodes()[n];
    if (IsKnown(in.type(node.first_out)))
      copy.CopyNode(node);
    else
      copy.CopyUntyped(node, node.op);
    FORGE_RETURN_IF_ERROR(out->status());
    for (uint32_t k = 0; k < node.outs; ++k)  // a result of the node may be an argument, too
      if (given.contains(node.first_out + k))
        copy.Set(node.first_out + k,
                 out->value(static_cast<uint32_t>(std::ranges::find(arguments, node.first_out + k) -
                                                  arguments.begin())));
  }
  for (const Function::Result& r : results) out->Return(r.name, copy[r.value]);
  FORGE_RETURN_IF_ERROR(out->status());
  m.Replace(function, std::move(out));
  return absl::OkStatus();
}

}  // namespace

bool IsHostType(const ir::Type& t) {
  return t.kind() == ir::Type::Kind::kSequence || t.kind() == ir::Type::Kind::kOptional ||
         (t.is_tensor() && t.dtype() == DType::kString);
}

absl::StatusOr<bool> WaitsForValues(const ir::Module& model, const std::string& function,
                                    bool freeze) {
  const Function* f = model.Find(function);
  if (f == nullptr) return false;
  const auto waits = [](const Function& in) {
    return std::ranges::any_of(in.nodes(),
                               [](const Node& n) { return !n.runtime_attributes.empty(); });
  };
  if (std::ranges::any_of(f->arguments(), [&](const auto& a) {
        return !IsKnown(f->type(a.value)) || IsHostType(f->type(a.value));
      }))
    return true;
  if (std::ranges::any_of(f->results(),
                          [&](const auto& r) { return IsHostType(f->type(r.value)); }))
    return true;
  if (std::ranges::any_of(f->nodes(),
                          [&](const Node& n) { return IsControl(n.op) || RunsOnHost(*f, n); }))
    return true;
  if (!waits(*f)) return false;
  const std::unique_ptr<ir::Module> m = ir::Clone(model);
  if (freeze) ir::Freeze(*m);
  Function folded(function, m.get());
  FORGE_RETURN_IF_ERROR(ir::Fold(*m, *m->Find(function), folded));
  return waits(folded);
}

absl::StatusOr<Resolved> Resolve(ir::Module& m, const std::string& function,
                                 std::span<const ResolveArgument> arguments,
                                 ir::Bindings& bindings) {
  const Function& in = *m.Find(function);
  auto out = std::make_unique<Function>(function, &m);
  Resolver resolver(m, *out, bindings);
  FORGE_RETURN_IF_ERROR(resolver.Run(in, arguments));
  FORGE_ASSIGN_OR_RETURN(out, WithHostSteps(m, std::move(out)));
  return Resolver::Finish(*m.Replace(function, std::move(out)));
}

absl::Status Extract(ir::Module& m, const std::string& function,
                     std::span<const uint32_t> arguments, std::span<const uint32_t> results) {
  std::vector<Function::Result> named;
  for (const uint32_t v : results) named.push_back({fmt::format("value.{}", v), v});
  return ExtractNodes(m, function, arguments, results, named);
}

absl::Status ExtractRest(ir::Module& m, const std::string& function,
                         std::span<const uint32_t> arguments) {
  const Function& f = *m.Find(function);
  return ExtractNodes(m, function, arguments, RootsOf(f), f.results());
}

std::vector<uint32_t> LiveValues(const Function& f, std::span<const uint32_t> made) {
  const absl::flat_hash_set<uint32_t> given(made.begin(), made.end());
  std::vector<uint32_t> live;
  WalkBack(f, RootsOf(f), [&](uint32_t v) {
    const bool known = IsKnown(f.type(v)) || given.contains(v);
    if (known && f.origin(v).kind != Function::Origin::kVariable) live.push_back(v);
    return !known;
  });
  std::ranges::sort(live);
  return live;
}

bool IsHostArithmetic(const Function& f, std::span<const uint32_t> values) {
  bool little = true;
  size_t nodes = 0;
  WalkBack(f, values, [&](uint32_t v) {
    little &= ir::IsSmallConstant(f.type(v)) && ++nodes <= kMaxHostNodes;
    return little;
  });
  return little;
}

}  // namespace forge
