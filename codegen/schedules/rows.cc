// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/rows.h"

#include "codegen/element.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

Val Plus(Val a, Val b) { return a + b; }
Val Larger(Val a, Val b) { return max(a, b); }

// The lanes of a vector as one.
Val Across(Val v, Val (*combine)(Val, Val)) {
  Val all = v.b->Extract(v, 0);
  for (int i = 1; i < v.type().lanes; ++i) all = combine(all, v.b->Extract(v, i));
  return all;
}

// Rows shorter than this are left to one invocation each.
constexpr int64_t kLongRow = 256, kFewRows = 64;

}  // namespace

RowSpace::RowSpace(const Region& r, size_t first_axis, size_t count)
    : first(first_axis), outer(r.anchor_output().shape()) {
  const auto begin = outer.begin() + static_cast<ptrdiff_t>(first);
  const auto end = begin + static_cast<ptrdiff_t>(count);
  inner.assign(begin, end);
  outer.erase(begin, end);
}

Dims RowSpace::Index(const Dim& row, const Dim& element) const {
  Dims index = Unflatten(row, outer);
  const Dims within = Unflatten(element, inner);
  index.insert(index.begin() + static_cast<ptrdiff_t>(first), within.begin(), within.end());
  return index;
}

Row::Row(Emission& m, const RowSpace& space, Share share)
    : m_(m), space_(space), share_(std::move(share)) {}

Val Row::Literal(double v) {
  return m_.b.Literal(AccumulatorOf(m_.region.anchor_output().dtype()).Lanes(lanes()), v);
}

Dims Row::Index(Val vector) {
  const Dim count = FloorDiv(space_.length(), share_.along);
  const Dim element = m_.e.Coordinate(vector, LastIndex(count)) * share_.along;
  return space_.Index(share_.row, element + m_.e.Lane(share_.along));
}

Val Row::Fold(Val start, absl::FunctionRef<Val(Val, Val)> f) {
  Builder& b = m_.b;
  const Val count = b.Scalar(FloorDiv(space_.length(), share_.along));
  return b.For(
      {share_.begin, count, share_.step, Builder::Range::kNot}, {start},
      [&](Val i, Vals carried) { return Vals{f(carried[0], m_.e.At(0, Index(i), lanes()))}; })[0];
}

Val Row::Combine(Val mine, Val (*combine)(Val, Val)) {
  if (share_.along > 1) mine = Across(mine, combine);
  return share_.tree != nullptr ? share_.tree->Combine(mine, combine) : mine;
}

Val Row::Sum(absl::FunctionRef<Val(Val)> f) {
  return Combine(Fold(Literal(0), [&](Val s, Val x) { return s + f(x); }), &Plus);
}

Val Row::Largest() {
  return Combine(Fold(Literal(-std::numeric_limits<double>::infinity()), &Larger), &Larger);
}

void Row::Store(absl::FunctionRef<Val(Val x, Operands of)> f) {
  Builder& b = m_.b;
  const Val count = b.Scalar(FloorDiv(space_.length(), share_.along));
  b.For({share_.begin, count, share_.step, Builder::Range::kNot}, {}, [&](Val i, const Vals&) {
    const Dims index = Index(i);
    const auto operand = [&](int k) {
      const ir::Type& type = m_.region.anchor_inputs()[static_cast<size_t>(k)];
      return m_.e.At(k, BroadcastIndex(index, type.shape()), lanes());
    };
    m_.e.Finish(index, f(operand(0), operand), lanes());
    return Vals{};
  });
}

SerialRows SerialRows::Defaults(const RowSpace& space) {
  SerialRows t;
  (space.last() ? t.elements : t.rows) =
      LanesFor(space.last() ? space.inner.back() : space.outer.back());
  return t;
}

Verdict SerialRows::Fits(const RowSpace& space, const Region& r) const {
  if (space.rows().divisor() % rows != 0 || space.length().divisor() % elements != 0)
    return Verdict::No("vectors do not divide the rows");
  return WorkgroupFits(workgroup, r.caps());
}

absl::StatusOr<Program> SerialRows::Emit(const RowFormula& formula, const Region& r) const {
  const RowSpace space = formula.space(r);
  const int across = static_cast<int>(rows), along = static_cast<int>(elements);
  Program out{.kernel = fmt::format("{}_serial_{}x{}", formula.name, across, along),
              .launches = {},
              .scratch_bytes = {}};
  Emission m(r, out.kernel, {static_cast<uint32_t>(workgroup), 1, 1});
  m.Guarded(m.Invocations(FloorDiv(space.rows(), across)), [&](const Dim& at) {
    Row row(m, space,
            {.row = at * across + m.e.Lane(across),
             .across = across,
             .along = along,
             .begin = m.b.Int(0),
             .step = m.b.Int(1)});
    formula.emit(row);
  });
  out.launches.push_back(std::move(m).Take());
  return out;
}

WorkgroupRows WorkgroupRows::Defaults(const RowSpace& space) {
  return {.workgroup = 128, .elements = space.last() ? LanesFor(space.inner.back()) : 1};
}

Verdict WorkgroupRows::Fits(const RowSpace& space, const Region& r) const {
  if (!space.last()) return Verdict::No("rows lie side by side");
  if (space.length().max() < kLongRow) return Verdict::No("rows are short");
  if (r.caps().runs_on_cpu && space.rows().min() >= kFewRows)
    return Verdict::No("barriers are dear and rows are many");
  if (space.length().divisor() % elements != 0)
    return Verdict::No("vectors do not divide the rows");
  if (WorkgroupTree::SharedBytes(workgroup, AccumulatorOf(r.anchor_output().dtype())) >
      r.caps().max_shared_bytes)
    return Verdict::No("too little shared memory");
  return WorkgroupFits(workgroup, r.caps());
}

absl::StatusOr<Program> WorkgroupRows::Emit(const RowFormula& formula, const Region& r) const {
  const RowSpace space = formula.space(r);
  const int along = static_cast<int>(elements);
  Program out{.kernel = fmt::format("{}_rows_{}x{}", formula.name, workgroup, along),
              .launches = {},
              .scratch_bytes = {}};
  Emission m(r, out.kernel, {static_cast<uint32_t>(workgroup), 1, 1});
  m.Guarded(m.Workgroups(space.rows()), [&](const Dim& at) {
    WorkgroupTree tree(m, AccumulatorOf(r.anchor_output().dtype()));
    Row row(m, space,
            {.row = at,
             .along = along,
             .begin = m.b.Builtin(BuiltinKind::kLocalX),
             .step = m.b.Int(workgroup),
             .tree = &tree});
    formula.emit(row);
  });
  out.launches.push_back(std::move(m).Take());
  return out;
}

}  // namespace forge::codegen
