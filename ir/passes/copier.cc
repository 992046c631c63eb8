// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/copier.h"

namespace forge::ir {

Copier::Copier(const Function& in, Function& out) : in_(in), out_(out), map_(in.value_count()) {
  for (const auto& a : in.arguments()) Map(a.value, out.Argument(a.name, in.type(a.value)));
}

Value Copier::operator[](uint32_t value) {
  if (value == kAbsent) return {};
  if (Variable* v = in_.VariableOf(value); v != nullptr && !map_[value]) Map(value, out_.Read(v));
  return map_[value];
}

Values Copier::Operands(std::span<const uint32_t> values) {
  Values out;
  for (uint32_t v : values) out.push_back((*this)[v]);
  return out;
}

void Copier::Map(uint32_t value, Value made) {
  map_[value] = made;
  if (in_.NameOf(value) != out_.NameOf(made.id)) out_.SetName(made, in_.NameOf(value));
}

void Copier::CopyNode(const Node& node) {
  Function::Scope scope(out_, node.from);
  std::vector<Function::LateField> late;
  for (const Late& l : node.late)
    late.push_back({node.op.def().fields[l.field].name, (*this)[l.value]});
  const Values made = out_.AddLate(node.op, Operands(node.in), late);
  if (!out_.status().ok()) return;
  for (uint16_t k = 0; k < node.outs; ++k) {
    KeepEncoding(in_, node.first_out + k, out_, made[k]);
    Map(node.first_out + k, made[k]);
  }
}

void KeepEncoding(const Function& in, uint32_t value, Function& out, Value made) {
  if (in.type(value).is_tensor() && made.type().is_tensor())
    out.SetEncoding(made, in.type(value).encoding());
}

absl::Status Copier::Finish() {
  for (const auto& r : in_.results()) out_.Return(r.name, (*this)[r.value]);
  for (const auto& u : in_.updates()) out_.Store(u.variable, (*this)[u.value]);
  return out_.status();
}

}  // namespace forge::ir
