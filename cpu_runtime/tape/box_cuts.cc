// SPDX-License-Identifier: Apache-2.0
// Where a box is cut, and which of its axes are split, so that indices become affine and conditions
// are decided.
#include <algorithm>

#include "cpu_runtime/tape/box_builder.h"
#include "cpu_runtime/tape/index.h"
#include "ir/dim/interval.h"

namespace forge::cpu {
namespace {

constexpr int kMaxCutDepth = 32;  // of an expression that is looked into
constexpr size_t kMaxAxes = 12;   // of a box
constexpr int64_t kMaxPeriod = int64_t{1} << 40;

}  // namespace

std::optional<size_t> BoxBuilder::AxisOf(const ir::SymbolRef& symbol) const {
  const auto at = std::find(symbols_.begin(), symbols_.end(), symbol);
  if (at == symbols_.end()) return std::nullopt;
  return axes_[static_cast<size_t>(at - symbols_.begin())];
}

void BoxBuilder::CutAt(size_t axis, int64_t at) {
  if (!may_cut_ || cut_ || at <= box_[axis].low || at >= box_[axis].high) return;
  cut_ = Cut{axis, at};
}

// A condition on one axis of the box is decided on either side of a cut.
void BoxBuilder::TryCut(const ir::Dim& distance) {
  const std::optional<Affine> affine = AsAffine(distance);
  if (!affine || affine->coefficients.size() != 1) return;
  const auto [symbol, by] = *affine->coefficients.begin();
  const std::optional<size_t> axis = AxisOf(symbol);
  if (!axis) return;
  // by * i + constant changes its sign between `at - 1` and `at`.
  const int64_t step = by > 0 ? by : -by, gap = by > 0 ? -affine->constant : affine->constant;
  const int64_t quotient = ir::FloorDivide(gap, step);
  CutAt(*axis, by > 0 ? quotient + (gap % step != 0) : quotient + 1);
}

// Where the box begins in a period of floordiv(numerator, divisor); nullopt unless every axis goes
// round in the period a whole number of times.
std::optional<int64_t> BoxBuilder::PhaseOf(const Affine& numerator, int64_t divisor) const {
  int64_t phase = ir::FloorModulo(numerator.constant, divisor);
  for (const auto& [symbol, coefficient] : numerator.coefficients) {
    const std::optional<size_t> axis = AxisOf(symbol);
    if (!axis) return std::nullopt;
    if (coefficient % divisor == 0) continue;
    if (coefficient < 1 || divisor % coefficient != 0) return std::nullopt;
    phase += ir::FloorModulo(box_[*axis].low, divisor / coefficient) * coefficient;
    phase %= divisor;
  }
  return phase;
}

// An axis that goes on through several periods of floordiv(numerator, divisor) is split into
// periods, once the box begins and ends with one.
void BoxBuilder::TrySplit(const ir::Dim& numerator, int64_t divisor) {
  const std::optional<Affine> affine = AsAffine(numerator);
  if (!affine || divisor < 2 || divisor > kMaxPeriod) return;
  const std::optional<int64_t> phase = PhaseOf(*affine, divisor);
  if (!phase) return;
  for (const auto& [symbol, coefficient] : affine->coefficients) {
    if (coefficient % divisor == 0) continue;
    const size_t axis = *AxisOf(symbol);
    const BoxAxis& a = box_[axis];
    const int64_t by = divisor / coefficient, past = *phase / coefficient % by;
    if (past != 0)
      CutAt(axis, a.low + by - past);
    else if (a.extent() > by && a.extent() % by != 0)
      CutAt(axis, a.high - a.extent() % by);
    else if (a.extent() > by && box_.size() < kMaxAxes && (!split_ || split_->by < by))
      split_ = Split{axis, by};
    if (cut_) return;
  }
}

void BoxBuilder::Untangle(const ir::Dim& d, int depth) {
  const ir::Dim::Part part = d.part();
  if (part.operands.empty() || depth > kMaxCutDepth || cut_) return;
  for (const ir::Dim& operand : part.operands) Untangle(operand, depth + 1);
  if (part.operands.size() != 2 || cut_) return;
  const ir::Dim &a = part.operands[0], &b = part.operands[1];
  if (part.op == ir::Dim::Op::kFloorDiv || part.op == ir::Dim::Op::kMod) {
    if (b.is_constant()) TrySplit(a, b.constant());
  } else if (part.op == ir::Dim::Op::kMin || part.op == ir::Dim::Op::kMax) {
    TryCut(a - b);
  }
}

}  // namespace forge::cpu
