// SPDX-License-Identifier: Apache-2.0
// Loads whose address is computed once for each row: a lookup in a table, whose rows are copied.
#include <algorithm>

#include "cpu_runtime/tape/box_builder.h"

namespace forge::cpu {
namespace {

constexpr int kMaxDepth = 32;  // of indices that are read at indices that are read

}  // namespace

bool BoxBuilder::DependsOn(const ir::Dim& d, const ir::SymbolRef& symbol, int depth) const {
  if (depth > kMaxDepth) return true;
  std::vector<ir::SymbolRef> used;
  d.CollectSymbols(used);
  return std::any_of(used.begin(), used.end(), [&](const ir::SymbolRef& s) {
    const auto it = definitions_.find(s);
    if (it == definitions_.end()) return s == symbol;
    const ir::Dims& at = it->second.at;
    return std::any_of(at.begin(), at.end(),
                       [&](const ir::Dim& i) { return DependsOn(i, symbol, depth + 1); });
  });
}

std::unique_ptr<BoxBuilder> BoxBuilder::OfRows() const {
  auto rows = std::make_unique<BoxBuilder>(spec_, box_, /*may_cut=*/false);
  rows->axes_.assign(axes_.begin(), axes_.end() - 1);
  rows->symbols_.assign(symbols_.begin(), symbols_.end() - 1);
  rows->program_.extents.assign(program_.extents.begin(), program_.extents.end() - 1);
  rows->program_.elements = program_.elements / program_.extents.back();
  return rows;
}

std::optional<Register> BoxBuilder::LoadRows(const Placed& source, const ir::Dim& address) {
  if (axes_.empty()) return std::nullopt;
  const ir::SymbolRef inner = symbols_.back();
  const ir::Dim stride =
      address.Substitute({{inner, ir::Dim(1)}}) - address.Substitute({{inner, ir::Dim(0)}});
  if (!stride.is_constant()) return std::nullopt;
  const int64_t low = box_[axes_.back()].low;
  const ir::Dim start = address + (ir::Dim(low) - ir::Dim(inner)) * stride;
  if (DependsOn(start, inner)) return std::nullopt;
  if (!rows_) rows_ = OfRows();
  rows_->definitions_ = definitions_;
  const Register row_address = rows_->IndexOf(start);
  if (!rows_->status_.ok()) {
    Fail(rows_->status_);
    return 0;
  }
  const DType t = source.view.dtype;
  return Emit(RowGatherInstruction{New(t), row_address, stride.constant(), source.operand, t,
                                   static_cast<uint64_t>(source.view.limit())});
}

}  // namespace forge::cpu
