// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/analysis/dim_values.h"
#include "ir/graph/interpreter.h"
#include "ir/op/attributes.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/reshape.h"
#include "ir/passes/fold_batch_norm.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

// Results up to this size are computed here, once, in f64; larger ones on the device, by `load`.
constexpr int64_t kMaxFoldedElements = 4096;

bool IsSmall(const Type& t) {
  if (!t.is_constant() || t.encoding() || t.dtype() == DType::kString) return false;
  const Dim n = t.elements();
  return n.is_constant() && n.constant() <= kMaxFoldedElements;
}

class Folder {
 public:
  Folder(Module& m, Function& out) : module_(m), out_(out), contents_(out) {}

  std::optional<Values> operator()(const Node& node, ValueSpan in, ValueSpan runtime) {
    if (node.runtime_attributes.empty() && HasEffects(node)) return std::nullopt;
    AnyOp op = node.op;
    if (!node.runtime_attributes.empty()) {
      std::optional<AnyOp> resolved = Resolve(node, runtime);
      if (!resolved) return std::nullopt;
      op = *resolved;
      Values made = out_.Add(op, in);
      if (!out_.status().ok() || HasEffects(node)) return made;
      return Simplify(op, in, made).value_or(made);
    }
    Types types;
    for (const Value& v : in) types.push_back(v ? v.type() : Type());
    absl::StatusOr<Types> results = op.Infer(types);
    if (!results.ok()) return std::nullopt;
    if (results->size() == 1) {
      if (auto same = Unchanged(op, in, results->front())) return Values{*same};
      if (auto view = ReshapedConstant(op, in, results->front())) return Values{*view};
      if (auto dims = FromContents(op, in, results->front())) return Values{*dims};
    }
    return Evaluated(op, in, *results);
  }

 private:
  std::optional<Values> Simplify(const AnyOp& op, ValueSpan in, const Values& made) {
    if (made.size() != 1) return std::nullopt;
    if (auto same = Unchanged(op, in, made[0].type())) return Values{*same};
    if (auto view = ReshapedConstant(op, in, made[0].type())) return Values{*view};
    return std::nullopt;
  }

  // The op with every runtime-valued attribute filled in; nullopt while one is unknown.
  std::optional<AnyOp> Resolve(const Node& node, ValueSpan runtime) {
    const OpDef& def = node.op.def();
    std::shared_ptr<void> self = def.make(node.op.self());
    for (size_t i = 0; i < node.runtime_attributes.size(); ++i) {
      const Field& field = def.fields[node.runtime_attributes[i].field];
      std::optional<Dims> known = contents_.ContentsOf(runtime[i].id);
      if (!known || !SetFromDims(field, self.get(), *known).ok()) return std::nullopt;
    }
    return AnyOp(def, self);
  }

  // A movement or cast of one operand that gives back the operand.
  std::optional<Value> Unchanged(const AnyOp& op, ValueSpan in, const Type& result) {
    if (in.size() != 1 || !in[0] || !(in[0].type() == result)) return std::nullopt;
    const OpDef& def = op.def();
    if (op.Is<Cast>()) return in[0];
    if (!result.is_tensor()) return std::nullopt;  // types without shapes say nothing of them
    if (def.info.keeps_order) return in[0];
    if (!def.map) return std::nullopt;
    // Same type and every element from its own place.
    Dims at;
    for (int64_t a = 0; a < result.rank(); ++a) {
      const Dim& extent = result.shape()[a];
      at.push_back(
          Dim(std::make_shared<Symbol>(Symbol{.name = fmt::format("i{}", a),
                                              .min = 0,
                                              .max = std::max<int64_t>(0, extent.max() - 1)})));
    }
    const Types types{in[0].type()};
    const IndexMap map = op.Map(types, at);
    const bool straight = map.loads.empty() && map.pieces.size() == 1 &&
                          map.pieces[0].when.empty() && !map.pieces[0].value &&
                          map.pieces[0].index == at;
    return straight ? std::optional<Value>(in[0]) : std::nullopt;
  }

  Variable* Constant(Value v) const {
    if (!v) return nullptr;
    Variable* variable = out_.VariableOf(v.id);
    return variable && variable->role == Variable::Role::kConstant && variable->init ? variable
                                                                                     : nullptr;
  }

  // A constant under another shape is the same bytes.
  std::optional<Value> ReshapedConstant(const AnyOp& op, ValueSpan in, const Type& result) {
    if (!op.def().info.keeps_order || in.size() != 1 || !result.is_constant()) return std::nullopt;
    Variable* from = Constant(in[0]);
    if (from == nullptr || from->type.encoding() || !from->init->begin.empty()) return std::nullopt;
    Variable view;
    view.name = from->name;
    view.type = result;
    view.init = Variable::Storage{from->init->bytes, result, {}};
    return out_.Read(module_.AddVariable(std::move(view)));
  }

  // Integers whose values are dimensions: shape arithmetic that has come to numbers.
  std::optional<Value> FromContents(const AnyOp& op, ValueSpan in, const Type& result) {
    const bool integer = result.is_tensor() && Has(kIntTypes, result.dtype());
    if (!integer || !IsSmall(result) || AllConstantOperands(in)) return std::nullopt;
    Values made = out_.Add(op, in);
    if (!out_.status().ok()) return made[0];
    std::optional<Dims> known = contents_.ContentsOf(made[0].id);
    if (!known || !AllConstant(*known)) return made[0];
    auto value = HostValue::Zeros(result.dtype(), Constants(result.shape()));
    if (!value.ok()) return made[0];
    for (size_t i = 0; i < known->size(); ++i)
      value->SetI64(static_cast<int64_t>(i), (*known)[i].constant());
    return AsConstant(*value, "shape");
  }

  bool AllConstantOperands(ValueSpan in) const {
    return std::all_of(in.begin(), in.end(),
                       [&](const Value& v) { return !v || HostOf(v).has_value(); });
  }

  // A constant operand on the host: a variable's bytes or a fill.
  std::optional<HostValue> HostOf(Value v) const {
    const Type& type = v.type();
    if (!IsSmall(type)) return std::nullopt;
    if (Variable* variable = Constant(v)) {
      auto value = InitialValue(*variable);
      return value.ok() ? std::optional<HostValue>(*std::move(value)) : std::nullopt;
    }
    const auto& origin = out_.origin(v.id);
    if (origin.kind != Function::Origin::kNode) return std::nullopt;
    const Node& node = out_.nodes()[origin.index];
    if (!node.op.Is<Fill>()) return std::nullopt;
    auto made = Evaluate(node.op, {});
    return made.ok() ? std::optional<HostValue>(std::move(made->front())) : std::nullopt;
  }

  std::optional<Values> Evaluated(const AnyOp& op, ValueSpan in, const Types& results) {
    if (in.empty() || op.def().info.host) return std::nullopt;
    for (const Type& t : results)
      if (!IsSmall(t)) return std::nullopt;
    std::vector<std::optional<HostValue>> operands;
    std::vector<const HostValue*> pointers;
    for (const Value& v : in) {
      operands.push_back(v ? HostOf(v) : std::nullopt);
      if (v && !operands.back()) return std::nullopt;
    }
    for (auto& o : operands) pointers.push_back(o ? &*o : nullptr);
    auto made = Evaluate(op, pointers);
    if (!made.ok()) return std::nullopt;
    Values values;
    for (const HostValue& v : *made) values.push_back(AsConstant(v, op.name()));
    return values;
  }

  Value AsConstant(const HostValue& v, std::string_view name) {
    Variable made;
    made.name = fmt::format("folded.{}", name);
    made.type = v.type();
    made.init = Variable::Storage{v.shared_bytes(), v.type(), {}};
    return out_.Read(module_.AddVariable(std::move(made)));
  }

  Module& module_;
  Function& out_;
  DimValues contents_;
};

absl::Status FoldOnce(Module& m, const Function& in, Function& out) {
  Folder folder(m, out);
  auto rule = [&](Function&, const Node& node, ValueSpan operands) {
    return folder(node, operands.first(node.in.size()), operands.subspan(node.in.size()));
  };
  return Rewriter{.pass = "fold"}.Run(in, out, rule);
}

// One-element constants become fills, which regions hold as literals instead of reading memory.
absl::Status ConstantsToFills(const Function& in, Function& out) {
  auto rule = [&](Function& f, const Node& node, ValueSpan operands) -> std::optional<Values> {
    Values changed(operands.begin(), operands.end());
    bool any = false;
    for (Value& v : changed) {
      Variable* c = v ? f.VariableOf(v.id) : nullptr;
      if (c == nullptr || c->role != Variable::Role::kConstant || !c->init) continue;
      const bool one = c->type.is_constant() && c->type.elements() == Dim(1) &&
                       Has(kNumberTypes, c->type.dtype());
      if (!one || c->type.encoding()) continue;
      auto value = InitialValue(*c);
      if (!value.ok()) continue;
      v = f(Fill{.value = value->number(0), .dtype = c->type.dtype(), .shape = c->type.shape()},
            {});
      any = true;
    }
    if (!any || !node.runtime_attributes.empty()) return std::nullopt;
    return f.Add(node.op, changed);
  };
  return Rewriter{.pass = "fold"}.Run(in, out, rule);
}

}  // namespace

absl::Status Fold(Module& m, const Function& in, Function& out) {
  Function known(in.name(), in.module()), joined(in.name(), in.module()),
      folded(in.name(), in.module());
  FORGE_RETURN_IF_ERROR(FoldOnce(m, in, known));
  FORGE_RETURN_IF_ERROR(FoldBatchNorms(known, joined));
  FORGE_RETURN_IF_ERROR(FoldOnce(m, joined, folded));
  return ConstantsToFills(folded, out);
}

}  // namespace forge::ir
