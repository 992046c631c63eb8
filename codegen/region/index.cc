// SPDX-License-Identifier: Apache-2.0
#include "codegen/region/index.h"

#include <algorithm>

namespace forge::codegen {

using ir::Dim;
using ir::Dims;

ir::SymbolRef NewCoordinate(std::string name, int64_t max, int64_t divisor) {
  return std::make_shared<ir::Symbol>(ir::Symbol{
      .name = std::move(name), .min = 0, .max = max, .divisor = divisor, .when = ir::When::kStep});
}

Dim Flatten(const Dims& index, const Dims& shape) {
  FORGE_CHECK(index.size() == shape.size());
  Dim flat = 0;
  for (size_t i = 0; i < index.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

Dims Unflatten(const Dim& flat, const Dims& shape) {
  Dims index(shape.size());
  Dim rest = flat;
  for (size_t i = shape.size(); i-- > 0;) {
    // An empty axis has no index; any will do, and 0 divides nothing.
    const bool one = shape[i] == Dim(1) || shape[i].max() < 1;
    index[i] = one ? Dim(0) : i == 0 ? rest : Mod(rest, shape[i]);
    if (!one) rest = FloorDiv(rest, shape[i]);
  }
  return index;
}

Dims BroadcastIndex(const Dims& index, const Dims& operand_shape) {
  FORGE_CHECK(operand_shape.size() <= index.size());
  const size_t extra = index.size() - operand_shape.size();
  Dims out(operand_shape.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = operand_shape[i] == Dim(1) ? Dim(0) : index[extra + i];
  return out;
}

Dims Substitute(const Dims& index, const std::map<ir::SymbolRef, Dim>& by) {
  Dims out;
  out.reserve(index.size());
  for (const Dim& d : index) out.push_back(d.Substitute(by));
  return out;
}

bool DependsOn(const Dim& d, const ir::SymbolRef& symbol) {
  if (d.is_constant()) return false;
  std::vector<ir::SymbolRef> symbols;
  d.CollectSymbols(symbols);
  return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
}

bool DependsOn(const Dims& index, const ir::SymbolRef& symbol) {
  return std::any_of(index.begin(), index.end(),
                     [&](const Dim& d) { return DependsOn(d, symbol); });
}

bool AlwaysHolds(const ir::IndexMap::Range& range) {
  return range.value.min() >= range.low.max() && range.value.max() < range.high.min();
}

int64_t LastIndex(const Dim& extent) { return std::max<int64_t>(extent.max(), 1) - 1; }

std::optional<Dim> AlignedBase(const Dim& d, const ir::SymbolRef& lane, int lanes) {
  Dim base = d.Substitute({{lane, Dim(0)}});
  if (base.divisor() % lanes != 0 || !(d == base + Dim(lane))) return std::nullopt;
  return base;
}

}  // namespace forge::codegen
