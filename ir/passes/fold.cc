// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/graph/interpreter.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/reshape.h"
#include "ir/passes/constant_table.h"
#include "ir/passes/fold_batch_norm.h"
#include "ir/passes/passes.h"
#include "ir/passes/patterns.h"

namespace forge::ir {
namespace {

class Folder {
 public:
  Folder(Module& m, Function& out) : module_(m), out_(out), constants_(m, out) {}

  std::optional<Values> operator()(const Node& node, ValueSpan in, ValueSpan runtime) {
    if (node.runtime_attributes.empty() && HasEffects(node)) return std::nullopt;
    AnyOp op = node.op;
    if (!node.runtime_attributes.empty()) {
      const absl::StatusOr<std::optional<AnyOp>> filled = constants_.Filled(node, op, runtime);
      if (!filled.ok() || !*filled) return std::nullopt;
      op = **filled;
      Values made = out_.Add(op, in);
      if (!out_.status().ok() || HasEffects(node)) return made;
      return Simplify(op, in, made).value_or(made);
    }
    Types types;
    for (const Value& v : in) types.push_back(v ? v.type() : Type());
    absl::StatusOr<Types> results = op.Infer(types);
    if (!results.ok()) return std::nullopt;
    if (results->size() == 1) {
      if (GivesItsOperand(op, in, results->front())) return Values{in[0]};
      if (auto fill = FillMoved(op, in, results->front())) return Values{out_(*fill, {})};
      if (auto view = ReshapedConstant(op, in, results->front())) return Values{*view};
      if (auto dims = FromContents(op, in, results->front())) return Values{*dims};
    }
    return constants_.Evaluated(op, in, *results);
  }

 private:
  std::optional<Values> Simplify(const AnyOp& op, ValueSpan in, const Values& made) {
    if (made.size() != 1) return std::nullopt;
    if (GivesItsOperand(op, in, made[0].type())) return Values{in[0]};
    if (auto view = ReshapedConstant(op, in, made[0].type())) return Values{*view};
    return std::nullopt;
  }

  // A constant under another shape is the same bytes.
  std::optional<Value> ReshapedConstant(const AnyOp& op, ValueSpan in, const Type& result) {
    if (!op.def().info.keeps_order || in.size() != 1 || !result.is_constant()) return std::nullopt;
    Variable* from = constants_.VariableOf(in[0]);
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
    if (!integer || !IsSmallConstant(result) || AllConstantOperands(in)) return std::nullopt;
    Values made = out_.Add(op, in);
    if (!out_.status().ok()) return made[0];
    return constants_.FromContents(made[0]).value_or(made[0]);
  }

  bool AllConstantOperands(ValueSpan in) const {
    return std::all_of(in.begin(), in.end(),
                       [&](const Value& v) { return !v || constants_.HostOf(v).has_value(); });
  }

  Module& module_;
  Function& out_;
  ConstantTable constants_;
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
