// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/workgroup.h"

#include <limits>

#include "codegen/region/element.h"
#include "codegen/region/storage.h"

namespace forge::codegen {

using ir::Dim;
using ir::Dims;

namespace {

bool ReducesBySubgroups(const Caps& caps, uint32_t workgroup, Type element) {
  const int64_t size = caps.narrow_subgroup_size();
  return caps.subgroup_arithmetic && caps.subgroup_reconvergence && BitWidth(element.elem) == 32 &&
         size > 1 && workgroup % size == 0;
}

}  // namespace

Val Combine(ReduceKind kind, Val a, Val b) {
  using Operator = Val (*)(Val, Val);
  constexpr Operator kOperators[] = {operator+, min, max, operator* };  // in order of their kinds
  return kOperators[static_cast<size_t>(kind)](a, b);
}

Val CombineLanes(ReduceKind kind, Val v) {
  Val all = v.b->Extract(v, 0);
  for (int i = 1; i < v.type().lanes; ++i) all = Combine(kind, all, v.b->Extract(v, i));
  return all;
}

Val ReduceRule::Start(Builder& b, int lanes) const {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr double kStarts[] = {0, 0, -kInfinite, kInfinite, 1};  // in order of ir::ReduceKind
  return splat(LiteralOf(b, dtype, kStarts[static_cast<size_t>(of)]), lanes);
}

ReduceKind ReduceRule::kind() const {
  constexpr ReduceKind kKinds[] = {ReduceKind::kSum, ReduceKind::kSum, ReduceKind::kMax,
                                   ReduceKind::kMin, ReduceKind::kProd};  // in the same order
  return kKinds[static_cast<size_t>(of)];
}

Val ReduceRule::Done(Val all, const Dim& elements) const {
  return of == ir::ReduceKind::kMean ? all / convert(all.b->Scalar(elements), type().elem)
                                     : Wrap(dtype, all);
}

void ForUnits(Emission& m, const Dim& local, int64_t threads, int64_t count,
              absl::FunctionRef<void(const Dim& unit, Val inside)> body) {
  for (int64_t first = 0; first < count; first += threads) {
    const Dim unit = local + first;
    const bool all = first + threads <= count;
    body(unit, all ? Val{} : m.e.Value(unit) < static_cast<double>(count));
  }
}

bool LiesInPieces(const Region& r, int operand, const Dim& extent,
                  absl::FunctionRef<Dims(const Dim& lane)> index) {
  const DType type = r.anchor_inputs()[static_cast<size_t>(operand)].dtype();
  if ((type != DType::kF16 && type != DType::kBF16) || extent.divisor() % kPiece != 0) return false;
  const ir::SymbolRef lane = NewCoordinate("lane", kPiece - 1);
  const auto from = r.SourceOf(operand, index(Dim(lane)));
  return from && r.PartsOf(from->argument) == 1 &&
         VectorAt(type, from->flat, lane, kPiece, r.caps()).has_value();
}

void FillShared(Emission& m, const Dim& local, const SharedLines& to,
                absl::FunctionRef<Val(const Dim& line, const Dim& element)> load) {
  const int64_t across = to.length / to.lanes;
  const auto copy = [&](const Dim& at) {
    const Dims of = Unflatten(at, {to.count, across});
    const Dim& line = of[0];
    const Dim first = of[1] * to.lanes;
    const Val v = load(line, first);
    for (int c = 0; c < to.lanes; ++c) {
      const Dim element = first + c;
      const Dim place = to.pitch > 0 ? line * to.pitch + element : element * Pitch(to.count) + line;
      m.b.Store(to.view, m.e.Value(place), to.lanes == 1 ? v : m.b.Extract(v, c));
    }
  };
  ForUnits(m, local, TileThreads::kAll, to.count * across,
           [&](const Dim& at, Val inside) { IfInside(m.b, inside, [&] { copy(at); }); });
}

WorkgroupReduction::WorkgroupReduction(Emission& m, Type element)
    : m_(m),
      by_subgroups_(ReducesBySubgroups(m.region.caps(), m.launch.kernel.workgroup[0], element)) {
  Kernel& k = m.launch.kernel;
  if (by_subgroups_) k.subgroup = static_cast<uint32_t>(m.region.caps().narrow_subgroup_size());
  if (k.workgroup[0] == k.subgroup) return;  // none to share with
  view_ = m.AddShared(
      "partial", Shared(by_subgroups_ ? k.workgroup[0] / k.subgroup : k.workgroup[0], element)[0]);
}

Val WorkgroupReduction::Reduce(ReduceKind kind, Val mine) {
  return by_subgroups_ ? OverSubgroups(kind, mine) : OverTree(kind, mine);
}

Val WorkgroupReduction::OverSubgroups(ReduceKind kind, Val mine) {
  Builder& b = m_.b;
  const Kernel& k = m_.launch.kernel;
  const Val part = b.SubgroupReduce(kind, mine);
  if (k.workgroup[0] == k.subgroup) return part;
  b.If(b.Builtin(BuiltinKind::kLane) == 0,
       [&] { b.Store(view_, b.Builtin(BuiltinKind::kSubgroup), part); });
  b.Barrier();
  Val all = b.Load(view_, b.Int(0));
  for (uint32_t i = 1; i < k.workgroup[0] / k.subgroup; ++i)
    all = Combine(kind, all, b.Load(view_, b.Int(i)));
  b.Barrier();  // the next reduction may overwrite it
  return all;
}

Val WorkgroupReduction::OverTree(ReduceKind kind, Val mine) {
  Builder& b = m_.b;
  Val local = b.Builtin(BuiltinKind::kLocalX);
  b.Store(view_, local, mine);
  b.Barrier();
  for (uint32_t half = m_.launch.kernel.workgroup[0] / 2; half > 0; half /= 2) {
    b.If(local < half, [&] {
      Val other = b.Load(view_, local + half);
      b.Store(view_, local, Combine(kind, b.Load(view_, local), other));
    });
    b.Barrier();
  }
  Val all = b.Load(view_, b.Int(0));
  b.Barrier();  // the next reduction may overwrite it
  return all;
}

}  // namespace forge::codegen
