// SPDX-License-Identifier: Apache-2.0
#include "formats/model_bin/model_bin_types.h"

namespace forge::formats {

absl::Status TypeTable::Apply(const fb::DimToken& token, std::vector<ir::Dim>& stack) const {
  const int64_t value = token.value();
  if (token.op() == fb::DimOp::Constant) {
    stack.emplace_back(value);
    return absl::OkStatus();
  }
  if (token.op() == fb::DimOp::Symbol) {
    if (value < 0 || static_cast<uint64_t>(value) >= symbols_.size())
      return DataLoss("symbol {} does not exist; there are {}", value, symbols_.size());
    stack.emplace_back(symbols_[static_cast<size_t>(value)]);
    return absl::OkStatus();
  }
  const bool sum = token.op() == fb::DimOp::Add || token.op() == fb::DimOp::Mul;
  if (value < 2 || static_cast<uint64_t>(value) > stack.size() || (!sum && value != 2))
    return DataLoss("an operator of a dimension has {} operands, but only {} values are left",
                    value, stack.size());
  const size_t first = stack.size() - static_cast<size_t>(value);
  ir::Dim result = stack[first];
  for (size_t i = first + 1; i < stack.size(); ++i) {
    switch (token.op()) {
      case fb::DimOp::Add:
        result = result + stack[i];
        break;
      case fb::DimOp::Mul:
        result = result * stack[i];
        break;
      case fb::DimOp::FloorDiv:
        result = FloorDiv(result, stack[i]);
        break;
      case fb::DimOp::Mod:
        result = Mod(result, stack[i]);
        break;
      case fb::DimOp::Min:
        result = Min(result, stack[i]);
        break;
      case fb::DimOp::Max:
        result = Max(result, stack[i]);
        break;
      default:
        return DataLoss("a dimension has the unknown operator {}", static_cast<int>(token.op()));
    }
  }
  stack.resize(first);
  stack.push_back(std::move(result));
  return absl::OkStatus();
}

absl::StatusOr<ir::Dim> TypeTable::Read(const fb::Dim& d) {
  const flatbuffers::uoffset_t size = SizeOf(d.tokens());
  if (size == 0) return ir::Dim(d.constant());
  if (size > kMaxDimTokens) return DataLoss("a dimension has {} tokens, too many", size);
  FORGE_RETURN_IF_ERROR(budget_.Spend(size * sizeof(fb::DimToken)));
  std::vector<ir::Dim> stack;
  for (const fb::DimToken* token : *d.tokens()) FORGE_RETURN_IF_ERROR(Apply(*token, stack));
  if (stack.size() != 1)
    return DataLoss("a dimension evaluates to {} values instead of 1", stack.size());
  return stack[0];
}

absl::StatusOr<ir::Dims> TypeTable::Read(const FbList<fb::Dim>* dims) {
  FORGE_RETURN_IF_ERROR(budget_.Spend(SizeOf(dims)));
  ir::Dims out;
  for (flatbuffers::uoffset_t i = 0; i < SizeOf(dims); ++i) {
    FORGE_ASSIGN_OR_RETURN(ir::Dim d, Read(*dims->Get(i)));
    out.push_back(std::move(d));
  }
  return out;
}

absl::StatusOr<ir::Type> TypeTable::Read(const fb::Type& t, uint32_t id) {
  using Kind = fb::TypeKind;
  if (t.kind() == Kind::Absent) return ir::Type();
  if (t.kind() == Kind::Unknown) return ir::Type::Unknown();
  if (t.kind() == Kind::Sequence || t.kind() == Kind::Optional) {
    if (t.element() >= id)
      return DataLoss("its element is type {}, which comes later", t.element());
    type_depths_[id] = type_depths_[t.element()] + 1;
    if (type_depths_[id] > kMaxTypeDepth) return DataLoss("it is nested too deep");
    const ir::Type& element = types_[t.element()];
    return t.kind() == Kind::Sequence ? ir::Type::Sequence(element) : ir::Type::Optional(element);
  }
  const std::optional<DType> dtype = ParseDType(TextOf(t.dtype()));
  if (!dtype) return DataLoss("unknown element type '{}'", TextOf(t.dtype()));
  if (t.kind() == Kind::Unranked) return ir::Type::Unranked(*dtype);
  if (t.kind() != Kind::Tensor) return DataLoss("unknown kind {}", static_cast<int>(t.kind()));
  if (SizeOf(t.encoding()) != 0) return DataLoss("unknown encoding '{}'", TextOf(t.encoding()));
  FORGE_ASSIGN_OR_RETURN(ir::Dims shape, Read(t.shape()));
  for (const ir::Dim& d : shape)
    if (d.is_constant() && d.constant() < 0)
      return DataLoss("dimension {} is negative", d.constant());
  return ir::Type::Tensor(*dtype, std::move(shape));
}

absl::Status TypeTable::ReadSymbols(ir::Module& module) {
  Names names("symbol");
  for (uint32_t i = 0; i < SizeOf(model_.symbols()); ++i) {
    const fb::Symbol& s = *model_.symbols()->Get(i);
    FORGE_ASSIGN_OR_RETURN(std::string name, budget_.Text(s.name()));
    if (s.divisor() < 1 || s.min() > s.max() || s.when() > fb::When::Step || name.empty())
      return DataLoss("symbol {} '{}' has bounds {} to {}, divisor {}", i, name, s.min(), s.max(),
                      s.divisor());
    FORGE_RETURN_IF_ERROR(names.Add(name));
    symbols_.push_back(std::make_shared<ir::Symbol>(ir::Symbol{
        std::move(name), s.min(), s.max(), s.divisor(), static_cast<ir::When>(s.when())}));
    module.AddSymbol(symbols_.back());
  }
  return absl::OkStatus();
}

absl::Status TypeTable::ReadTypes() {
  type_depths_.resize(SizeOf(model_.types()));
  for (uint32_t i = 0; i < SizeOf(model_.types()); ++i) {
    absl::StatusOr<ir::Type> type = Read(*model_.types()->Get(i), i);
    if (!type.ok()) return Annotate(type.status(), fmt::format("type {}", i));
    types_.push_back(*std::move(type));
  }
  return absl::OkStatus();
}

}  // namespace forge::formats
