// SPDX-License-Identifier: Apache-2.0
// What is computed once for each row of the innermost axis: where a lookup in a table finds the row
// that it copies, and whether it is inside.
#include <algorithm>

#include "cpu_runtime/tape/box_builder.h"

namespace forge::cpu {
namespace {

constexpr int kMaxGatherDepth = 32;  // of indices that are read at indices that are read

}  // namespace

bool BoxBuilder::DependsOn(const ir::Dim& d, const ir::SymbolRef& symbol, int depth) const {
  if (depth > kMaxGatherDepth) return true;
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

bool BoxBuilder::IsOfRows(const ir::Dim& d) const {
  return !are_rows_ && !axes_.empty() && !DependsOn(d, symbols_.back());
}

BoxBuilder& BoxBuilder::Rows() {
  if (!rows_) {
    rows_ = std::make_unique<BoxBuilder>(spec_, box_, /*may_cut=*/false);
    rows_->are_rows_ = true;
    rows_->axes_.assign(axes_.begin(), axes_.end() - 1);
    rows_->symbols_.assign(symbols_.begin(), symbols_.end() - 1);
    rows_->program_.extents.assign(program_.extents.begin(), program_.extents.end() - 1);
    rows_->program_.elements = program_.elements / program_.extents.back();
  }
  rows_->definitions_ = definitions_;
  return *rows_;
}

Register BoxBuilder::RepeatRows(DType t, absl::FunctionRef<Register(BoxBuilder&)> compute) {
  BoxBuilder& rows = Rows();
  const Register value = compute(rows);
  if (!rows.status_.ok()) Fail(rows.status_);
  rows.kept_.push_back(value);
  return Emit(RowRepeatInstruction{New(t), value, HeldBytes(t)});
}

std::optional<Register> BoxBuilder::LoadRows(const Placed& source, const ir::Dim& address) {
  if (axes_.empty()) return std::nullopt;
  const ir::SymbolRef inner = symbols_.back();
  const ir::Dim stride =
      address.Substitute({{inner, ir::Dim(1)}}) - address.Substitute({{inner, ir::Dim(0)}});
  if (!stride.is_constant()) return std::nullopt;
  const ir::Dim start = address + (ir::Dim(box_[axes_.back()].low) - ir::Dim(inner)) * stride;
  if (!IsOfRows(start)) return std::nullopt;
  const Register row_address = Rows().IndexOf(start);
  if (!rows_->status_.ok()) Fail(rows_->status_);
  rows_->kept_.push_back(row_address);
  const DType t = source.view.dtype;
  return Emit(RowGatherInstruction{New(t), row_address, stride.constant(), source.operand, t,
                                   static_cast<uint64_t>(source.view.limit())});
}

}  // namespace forge::cpu
