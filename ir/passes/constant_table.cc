// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/constant_table.h"

#include <algorithm>

#include "ir/graph/interpreter.h"
#include "ir/op/attributes.h"
#include "ir/ops/creation/fill.h"

namespace forge::ir {
namespace {

constexpr int64_t kMaxFoldedElements = 4096;

}  // namespace

bool IsSmallConstant(const Type& t) {
  if (!t.is_constant() || t.encoding() || t.dtype() == DType::kString) return false;
  const Dim n = t.elements();
  return n.is_constant() && n.constant() <= kMaxFoldedElements;
}

Variable* ConstantTable::VariableOf(Value v) const {
  if (!v) return nullptr;
  Variable* variable = out_.VariableOf(v.id);
  return variable && variable->role == Variable::Role::kConstant && variable->init ? variable
                                                                                   : nullptr;
}

std::optional<HostValue> ConstantTable::HostOf(Value v) const {
  if (!IsSmallConstant(v.type())) return std::nullopt;
  if (Variable* variable = VariableOf(v)) {
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

std::optional<Values> ConstantTable::Evaluated(const AnyOp& op, ValueSpan in,
                                               const Types& results) {
  if (in.empty() || op.def().info.host) return std::nullopt;
  if (!std::ranges::all_of(results, IsSmallConstant)) return std::nullopt;
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
  for (const HostValue& v : *made) values.push_back(Add(v, op.name()));
  return values;
}

std::optional<Value> ConstantTable::FromContents(Value v) {
  const Type& type = v.type();
  if (!type.is_tensor() || !Has(kIntTypes, type.dtype()) || !IsSmallConstant(type))
    return std::nullopt;
  const std::optional<Dims> known = contents_.ContentsOf(v.id);
  if (!known || !AllConstant(*known)) return std::nullopt;
  auto value = HostValue::Zeros(type.dtype(), Constants(type.shape()));
  if (!value.ok()) return std::nullopt;
  FORGE_CHECK(value->elements() == static_cast<int64_t>(known->size()));
  for (size_t i = 0; i < known->size(); ++i)
    value->SetI64(static_cast<int64_t>(i), (*known)[i].constant());
  return Add(*value, "shape");
}

absl::StatusOr<std::optional<AnyOp>> ConstantTable::Filled(const Node& node, const AnyOp& op,
                                                           ValueSpan runtime) {
  const OpDef& def = op.def();
  std::shared_ptr<void> self = def.make(op.self());
  for (size_t i = 0; i < node.runtime_attributes.size(); ++i) {
    const std::optional<Dims> known = contents_.ContentsOf(runtime[i].id);
    if (!known) return std::nullopt;
    FORGE_RETURN_IF_ERROR(
        SetFromDims(def.fields[node.runtime_attributes[i].field], self.get(), *known));
  }
  return AnyOp(def, std::move(self));
}

Value ConstantTable::Add(const HostValue& v, std::string_view name) {
  Variable made;
  made.name = fmt::format("folded.{}", name);
  made.type = v.type();
  made.init = Variable::Storage{v.shared_bytes(), v.type(), {}};
  return out_.Read(module_.AddVariable(std::move(made)));
}

}  // namespace forge::ir
