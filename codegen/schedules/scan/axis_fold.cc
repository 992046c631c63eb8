// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/scan/axis_fold.h"

#include <cmath>
#include <limits>

#include "codegen/kernel/functions.h"
#include "codegen/region/element.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

Val LogSumExp(Val a, Val b) {
  const Val most = max(a, b), least = min(a, b);
  const Val above = log(exp(least - most) + 1.0);
  return most + select(most == least, std::log(2.0), above);  // also where both are infinite
}

Val CombineValues(FoldKind kind, Val a, Val b) {
  switch (kind) {
    case FoldKind::kSum:
      return a + b;
    case FoldKind::kProd:
      return a * b;
    case FoldKind::kMax:
      return max(a, b);
    case FoldKind::kMin:
      return min(a, b);
    case FoldKind::kLogSumExp:
      break;
  }
  return LogSumExp(a, b);
}

ReduceKind ReduceKindOf(FoldKind kind) {
  constexpr ReduceKind kKinds[] = {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax,
                                   ReduceKind::kMin};  // in order of FoldKind
  return kKinds[static_cast<size_t>(kind)];
}

Val Lane(Val v, int lane) { return v.type().lanes == 1 ? v : v.b->Extract(v, lane); }

}  // namespace

// ---- the rule -----------------------------------------------------------------------------------

Type FoldRule::type() const { return dtype == DType::kBool ? kI32 : AccumulatorOf(dtype); }

Val FoldRule::Held(Val element) const { return ConvertElement(element, dtype, type().elem); }

Val FoldRule::Element(Val held) const {
  return dtype == DType::kBool ? held != 0.0 : Wrap(dtype, held);
}

Vals FoldRule::Start(Builder& b, int lanes, Val first) const {
  constexpr double kStarts[] = {0, 1, -kInfinite, kInfinite, -kInfinite};  // in order of FoldKind
  const double start = kStarts[static_cast<size_t>(kind)];
  const bool of_bool = dtype == DType::kBool;
  const Val value = of_bool ? b.Literal(kI32, start) : LiteralOf(b, dtype, start);
  Vals out{splat(value, lanes)};
  // The last of equal elements replaces it; of the first of them it has the place.
  if (with_index) out.push_back(splat(last ? b.Int(-1) : first, lanes));
  return out;
}

Vals FoldRule::Next(const Vals& so_far, const Vals& x) const {
  if (!with_index) return {CombineValues(kind, so_far[0], x[0])};
  const Val a = so_far[0], b = x[0];
  const bool most = kind == FoldKind::kMax;
  Val taken = last ? (most ? b >= a : b <= a) : (most ? b > a : b < a);
  if (IsFloat(type().elem)) taken = taken | (last ? isnan(b) : isnan(b) & ~isnan(a));
  return {select(taken, b, a), select(taken, x[1], so_far[1])};
}

Vals FoldRule::Combine(const Vals& a, const Vals& b) const {
  if (!with_index) return {CombineValues(kind, a[0], b[0])};
  const Val better = kind == FoldKind::kMax ? b[0] > a[0] : b[0] < a[0];
  Val equal = a[0] == b[0], taken = better;
  if (IsFloat(type().elem)) {
    const Val a_nan = isnan(a[0]), b_nan = isnan(b[0]);
    equal = equal | (a_nan & b_nan);
    taken = taken | (b_nan & ~a_nan);
  }
  taken = taken | (equal & (last ? b[1] > a[1] : b[1] < a[1]));
  return {select(taken, b[0], a[0]), select(taken, b[1], a[1])};
}

// ---- rows ---------------------------------------------------------------------------------------

FoldTile DefaultFoldTile(const RowSpace& space) {
  const int lanes = static_cast<int>(space.lanes());
  return space.last() ? FoldTile{1, lanes} : FoldTile{lanes, 1};
}

Verdict FoldTileFits(const RowSpace& space, const FoldTile& tile) {
  if (tile.across > 1 && tile.along > 1) return Verdict::No("vectors run along one axis");
  if (space.rows().divisor() % tile.across != 0 || space.length().divisor() % tile.along != 0)
    return Verdict::No("vectors do not divide the rows");
  return Verdict::Yes();
}

Dims AxisWalk::Index(const Dim& first_row, const Dim& vector) {
  const Dim at = axis_.reverse ? Vectors() - 1 - vector : vector;
  return axis_.space.Index(first_row + m_.e.Lane(tile_.across),
                           at * tile_.along + m_.e.Lane(tile_.along));
}

Val AxisWalk::Position(Val vector) { return vector * static_cast<double>(tile_.along); }

Vals AxisWalk::Start(Val vector) { return axis_.rule.Start(m_.b, tile_.across, Position(vector)); }

Vals AxisWalk::Fold(const Dim& first_row, const Builder::Range& vectors) {
  const FoldRule& rule = axis_.rule;
  const int lanes = tile_.lanes();
  Vals steps;  // of the lanes, from the first element of a vector
  for (int i = 0; i < lanes; ++i)
    steps.push_back(m_.b.Int(tile_.along == 1 ? 0 : axis_.reverse ? lanes - 1 - i : i));
  const auto positions = [&](Val vector) { return splat(Position(vector), lanes) + Packed(steps); };
  Vals start = rule.Start(m_.b, lanes, Position(vectors.begin));
  if (rule.with_index && !rule.last) start[1] = positions(vectors.begin);
  Vals all = m_.b.For(vectors, start, [&](Val i, const Vals& so_far) {
    const Dim vector = m_.e.Coordinate(i, LastIndex(Vectors()));
    Vals x{rule.Held(m_.e.At(0, Index(first_row, vector), lanes))};
    if (rule.with_index) x.push_back(positions(i));
    return rule.Next(so_far, x);
  });
  if (tile_.along == 1) return all;
  Vals one;
  for (int lane = 0; lane < lanes; ++lane) {
    Vals its;
    for (Val v : all) its.push_back(Lane(v, lane));
    one = lane == 0 ? its : rule.Combine(one, its);
  }
  return one;
}

std::vector<Vals> AxisWalk::Load(const Dim& first_row, const Dim& vector) {
  const Val loaded = axis_.rule.Held(m_.e.At(0, Index(first_row, vector), tile_.lanes()));
  Vals values;
  if (tile_.along > 1)
    Unpack(loaded, values);
  else
    values.push_back(loaded);
  if (axis_.reverse) std::reverse(values.begin(), values.end());
  std::vector<Vals> out;
  for (size_t i = 0; i < values.size(); ++i) {
    out.push_back({values[i]});
    if (!axis_.rule.with_index) continue;
    const Val at = Position(m_.e.Value(vector)) + static_cast<double>(i);
    out.back().push_back(splat(at, tile_.across));
  }
  return out;
}

void AxisWalk::Finish(const Dim& first_row, const Dim& vector, const std::vector<Vals>& results) {
  const Dims index = Index(first_row, vector);
  for (size_t c = 0; c < axis_.rule.size(); ++c) {
    Vals parts;
    for (const Vals& r : results) parts.push_back(r[c]);
    if (axis_.reverse) std::reverse(parts.begin(), parts.end());
    Val v = tile_.along > 1 ? Packed(parts) : parts[0];
    if (c == 0) {
      v = axis_.rule.Element(v);
    } else {
      if (axis_.reverse) v = splat(m_.e.Value(axis_.space.length() - 1), v.type().lanes) - v;
      v = convert(v, DType::kI64);
    }
    m_.e.Finish(index, v, tile_.lanes(), static_cast<int>(c));
  }
}

// ---- scratch ------------------------------------------------------------------------------------

int64_t FoldScratch::Bytes() const {
  int64_t each = 0;
  for (size_t c = 0; c < axis_.rule.size(); ++c) each += ElementBytes(axis_.rule.TypeOf(c));
  return (axis_.space.rows() * (parts_ * each)).max();
}

// Values of all parts come first; a place counts elements of the component's own type.
Dim FoldScratch::Place(size_t component, const Dim& part, const Dim& row) const {
  const Dim place = part * axis_.space.rows() + row;
  if (component == 0) return place;
  const int64_t words = ElementBytes(axis_.rule.type()) / ElementBytes(kI32);
  return axis_.space.rows() * (parts_ * words) + place;
}

void FoldScratch::Store(Emission& m, const Dim& part, const Dim& first_row,
                        const Vals& results) const {
  for (size_t c = 0; c < results.size(); ++c)
    for (int i = 0; i < results[c].type().lanes; ++i)
      m.e.StoreScratch(0, Place(c, part, first_row + i), Lane(results[c], i));
}

Vals FoldScratch::Gather(Emission& m, const Dim& end, const Dim& first_row, int across) const {
  const FoldRule& rule = axis_.rule;
  const Builder::Range range{m.b.Int(0), m.e.Value(end), m.b.Int(1)};
  return m.b.For(range, rule.Start(m.b, across, m.b.Int(INT32_MAX)), [&](Val i, const Vals& all) {
    const Dim part = m.e.Coordinate(i, parts_ - 1);
    Vals its;
    for (size_t c = 0; c < rule.size(); ++c) {
      Vals lanes;
      for (int n = 0; n < across; ++n)
        lanes.push_back(m.e.LoadScratch(0, rule.TypeOf(c), Place(c, part, first_row + n)));
      its.push_back(Packed(lanes));
    }
    return rule.Combine(all, its);
  });
}

// ---- a workgroup --------------------------------------------------------------------------------

WorkgroupFold::WorkgroupFold(Emission& m, const FoldRule& rule) : m_(m), rule_(rule) {
  Kernel& k = m.launch.kernel;
  const Caps& caps = m.region.caps();
  const int64_t subgroup = caps.narrow_subgroup_size();
  const bool product = rule.kind == FoldKind::kSum || rule.kind == FoldKind::kProd;
  by_subgroups_ = product && caps.subgroup_arithmetic && caps.subgroup_reconvergence &&
                  BitWidth(rule.type().elem) == 32 && subgroup > 1 &&
                  k.workgroup[0] % subgroup == 0;
  if (by_subgroups_) k.subgroup = static_cast<uint32_t>(subgroup);
  for (const SharedArray& array : Shared(k.workgroup[0], rule))
    views_.push_back(m.AddShared("partial", array));
}

std::vector<SharedArray> WorkgroupFold::Shared(int64_t invocations, const FoldRule& rule) {
  std::vector<SharedArray> out;
  for (size_t c = 0; c < rule.size(); ++c) out.push_back({rule.TypeOf(c), invocations});
  return out;
}

Val WorkgroupFold::rank() {
  Builder& b = m_.b;
  if (!by_subgroups_) return b.Builtin(BuiltinKind::kLocalX);
  return b.Builtin(BuiltinKind::kSubgroup) * static_cast<double>(m_.launch.kernel.subgroup) +
         b.Builtin(BuiltinKind::kLane);
}

void WorkgroupFold::Store(Val at, const Vals& v) {
  for (size_t c = 0; c < v.size(); ++c) m_.b.Store(views_[c], at, v[c]);
}

Vals WorkgroupFold::Load(Val at) {
  Vals out;
  for (uint16_t view : views_) out.push_back(m_.b.Load(view, at));
  return out;
}

Vals WorkgroupFold::Select(Val condition, const Vals& a, const Vals& b) {
  Vals out;
  for (size_t c = 0; c < a.size(); ++c) out.push_back(select(condition, a[c], b[c]));
  return out;
}

Vals WorkgroupFold::Reduce(const Vals& mine) {
  Builder& b = m_.b;
  const Val local = b.Builtin(BuiltinKind::kLocalX);
  Store(local, mine);
  b.Barrier();
  for (uint32_t half = m_.launch.kernel.workgroup[0] / 2; half > 0; half /= 2) {
    b.If(local < half, [&] { Store(local, rule_.Combine(Load(local), Load(local + half))); });
    b.Barrier();
  }
  Vals all = Load(b.Int(0));
  b.Barrier();  // the next one may overwrite it
  return all;
}

// Hillis and Steele, "Data parallel algorithms", 1986: of work log2(invocations) for each, once for
// a tile of several elements to an invocation.
Vals WorkgroupFold::ScanTree(Vals mine) {
  Builder& b = m_.b;
  const Val local = b.Builtin(BuiltinKind::kLocalX);
  Store(local, mine);
  for (uint32_t step = 1; step < m_.launch.kernel.workgroup[0]; step *= 2) {
    b.Barrier();
    const Vals before = Load(max(local - static_cast<double>(step), 0.0));
    b.Barrier();
    mine = Select(local >= static_cast<double>(step), rule_.Combine(before, mine), mine);
    Store(local, mine);
  }
  b.Barrier();
  return mine;
}

WorkgroupFold::Scanned WorkgroupFold::ScanSubgroups(const Vals& mine) {
  Builder& b = m_.b;
  const Kernel& k = m_.launch.kernel;
  const Val at = rank(), subgroup = b.Builtin(BuiltinKind::kSubgroup);
  Store(at, {b.SubgroupScan(ReduceKindOf(rule_.kind), mine[0])});
  b.Barrier();
  const Vals start = rule_.Start(b, 1, {});
  Vals before = start, all = start;
  for (uint32_t s = 0; s < k.workgroup[0] / k.subgroup; ++s) {
    const Vals its = Load(b.Int((s + 1) * k.subgroup - 1));
    before = Select(subgroup > static_cast<double>(s), rule_.Combine(before, its), before);
    all = rule_.Combine(all, its);
  }
  const Vals beside = Load(max(at - 1.0, 0.0));
  const Val first = b.Builtin(BuiltinKind::kLane) == 0.0;
  before = Select(first, before, rule_.Combine(before, beside));
  b.Barrier();
  return {before, all};
}

WorkgroupFold::Scanned WorkgroupFold::Scan(const Vals& mine) {
  if (by_subgroups_) return ScanSubgroups(mine);
  Builder& b = m_.b;
  ScanTree(mine);
  const Val local = b.Builtin(BuiltinKind::kLocalX);
  const Vals beside = Load(max(local - 1.0, 0.0));
  const Vals all = Load(b.Int(m_.launch.kernel.workgroup[0] - 1));
  b.Barrier();  // the next one may overwrite it
  return {Select(local == 0.0, rule_.Start(b, 1, b.Int(INT32_MAX)), beside), all};
}

}  // namespace forge::codegen
