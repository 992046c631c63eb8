// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/graph/copier.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

absl::Status BindInto(Module& m, const Function& in, Function& out, const Bindings& values,
                      TypeSpan arguments);

// What symbols stand for in a body: its operands' extents first, for it may be called with others
// elsewhere.
Bindings BodyBindings(const Function& body, TypeSpan in, const Bindings& values) {
  Bindings own;
  for (size_t i = 0; i < std::min(in.size(), body.arguments().size()); ++i) {
    const Dims& wanted = body.type(body.arguments()[i].value).shape();
    const Dims& given = in[i].shape();
    for (size_t a = 0; a < std::min(wanted.size(), given.size()); ++a)
      if (const Dim::Part part = wanted[a].part();
          part.op == Dim::Op::kSymbol && given[a].is_constant())
        own.emplace(part.symbol, given[a].constant());
  }
  own.insert(values.begin(), values.end());
  return own;
}

// The op with its symbols replaced; bodies are bound for the types they are called with.
absl::StatusOr<AnyOp> BindOp(Module& m, const AnyOp& op, TypeSpan in, const Bindings& values) {
  AnyOp bound = op.Bind(values);
  const OpDef& def = op.def();
  bool has_body = false;
  for (const Field& f : def.fields) has_body |= f.kind == FieldKind::kFunction;
  if (!has_body) return bound;
  std::shared_ptr<void> self = def.make(bound.self());
  for (const Field& f : def.fields) {
    if (f.kind != FieldKind::kFunction) continue;
    auto& body = *static_cast<Function**>(f.at(self.get()));
    if (body == nullptr) continue;
    Function* made = m.AddFunction(body->name());
    FORGE_RETURN_IF_ERROR(BindInto(m, *body, *made, BodyBindings(*body, in, values), in));
    body = made;
  }
  return AnyOp(def, self);
}

// `arguments`: types of a body's arguments when they are those of the call; empty: the function's
// own, bound.
absl::Status BindInto(Module& m, const Function& in, Function& out, const Bindings& values,
                      TypeSpan arguments) {
  Copier copy(in, out, {.symbols = &values});
  copy.CopyArguments(arguments.size() == in.arguments().size() ? arguments : TypeSpan());
  for (const auto& r : in.reads()) copy[r.value];
  for (const Node& node : in.nodes()) {
    if (!node.runtime_attributes.empty())
      return InvalidArgument("{}: {} is not known before the run",
                             node.from ? node.from->ToText() : "", node.op.ToText());
    Types types;
    for (const Value& v : copy.Operands(node.in)) types.push_back(v ? v.type() : Type());
    FORGE_ASSIGN_OR_RETURN(const AnyOp op, BindOp(m, node.op, types, values));
    copy.CopyNode(node, op);
    FORGE_RETURN_IF_ERROR(out.status());
  }
  return copy.Finish();
}

// Are the symbols in `shape` step values alone?
bool OpenAtStepsOnly(const Dims& shape) {
  std::vector<SymbolRef> symbols;
  for (const Dim& d : shape) d.CollectSymbols(symbols);
  return std::all_of(symbols.begin(), symbols.end(),
                     [](const SymbolRef& s) { return s->when == When::kStep; });
}

}  // namespace

absl::Status Bind(Module& m, const Function& in, Function& out, const Bindings& values) {
  FORGE_RETURN_IF_ERROR(BindInto(m, in, out, values, {}));
  for (uint32_t v = 0; v < out.value_count(); ++v)
    if (const Type& t = out.type(v); t.is_tensor() && !OpenAtStepsOnly(t.shape()))
      return InvalidArgument("the extents of '{}', {}, do not follow from those of the inputs",
                             out.NameOf(v), t.ToText());
  return absl::OkStatus();
}

}  // namespace forge::ir
