// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/rows.h"

#include "codegen/element.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// Rows shorter than this are no work for a workgroup, or a subgroup.
constexpr int64_t kLongRow = 256, kShortRow = 32, kFewRows = 64;
// Numbers that fit the registers of an invocation beside its work; on CPUs, what does not lies on
// the stack, and only the time to compile says how many are too many to hold unasked.
int64_t MostHeld(const Caps& caps) { return caps.runs_on_cpu ? 512 : 16; }
int64_t HeldUnasked(const Caps& caps) { return std::min<int64_t>(MostHeld(caps), 128); }

// What as many invocations have of a row that is theirs together.
struct Split {
  const RowSpace& space;
  int64_t elements, invocations;
  // Vectors that one sees at most.
  int64_t vectors() const {
    const int64_t all = space.length().max() / elements;
    return all / invocations + (all % invocations != 0 ? 1 : 0);
  }
  int64_t numbers() const { return vectors() * elements; }  // that one holds, where it does
  Verdict Fits(bool held, const Caps& caps) const {
    if (!space.last()) return Verdict::No("rows lie side by side");
    if (held && numbers() > MostHeld(caps)) return Verdict::No("rows do not fit registers");
    if (space.length().divisor() % elements != 0)
      return Verdict::No("vectors do not divide the rows");
    return Verdict::Yes();
  }
  Row::Share Of(Emission& m, const Dim& row, BuiltinKind which, bool held) const {
    return {.row = row,
            .along = static_cast<int>(elements),
            .first = m.e.Coordinate(m.b.Builtin(which), invocations - 1),
            .step = invocations,
            .held = held ? vectors() : 0};
  }
};

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

Dims Row::Index(const Dim& vector) {
  return space_.Index(share_.row, vector * share_.along + m_.e.Lane(share_.along));
}

const std::vector<Row::Held>& Row::HeldVectors() {
  while (static_cast<int64_t>(held_.size()) < share_.held) {
    const Dim next = share_.first + static_cast<int64_t>(held_.size()) * share_.step;
    const Position at = Guard(m_, next, VectorCount());
    held_.push_back({at, m_.e.At(0, Index(at.at), lanes())});
  }
  return held_;
}

Vals Row::Fold(Vals start, absl::FunctionRef<Vals(const Vals&, Val)> f) {
  Builder& b = m_.b;
  if (share_.held > 0) {
    for (const Held& h : HeldVectors()) {
      const Vals next = f(start, h.x);
      for (size_t i = 0; i < start.size(); ++i)
        start[i] = h.at.inside ? select(h.at.inside, next[i], start[i]) : next[i];
    }
    return start;
  }
  return b.For(Vectors(), std::move(start), [&](Val i, const Vals& carried) {
    const Dim vector = m_.e.Coordinate(i, LastIndex(VectorCount()));
    return f(carried, m_.e.At(0, Index(vector), lanes()));
  });
}

Val Row::OfRow(double v) {
  return m_.b.Literal(AccumulatorOf(m_.region.anchor_output().dtype()).Lanes(share_.across), v);
}

Val Row::OverLanes(ReduceKind kind, Val v) const {
  return v.type().lanes > share_.across ? CombineLanes(kind, v) : v;
}

Val Row::Combine(ReduceKind kind, Val mine) {
  mine = OverLanes(kind, mine);
  return share_.combine ? share_.combine(kind, mine) : mine;
}

Val Row::Sum(absl::FunctionRef<Val(Val)> f) {
  const auto step = [&](const Vals& s, Val x) { return Vals{s[0] + f(x)}; };
  return Combine(ReduceKind::kSum, Fold({Literal(0)}, step)[0]);
}

Row::Exponentials Row::SumExponentials() {
  constexpr double kLeast = -std::numeric_limits<float>::max();
  if (share_.held > 0) {
    const auto larger = [](const Vals& top, Val x) { return Vals{max(top[0], x)}; };
    const Val top = Combine(ReduceKind::kMax, Fold({Literal(kLeast)}, larger)[0]);
    return {top, Sum([&](Val x) { return exp(x - top); })};
  }
  const auto step = [&](const Vals& so_far, Val x) {
    const Val top = max(so_far[0], OverLanes(ReduceKind::kMax, x));
    const Val shrunk = so_far[1] * exp(so_far[0] - top);
    return Vals{top, shrunk + exp(x - top)};
  };
  const Vals mine = Fold({OfRow(kLeast), Literal(0)}, step);
  const Val top = Combine(ReduceKind::kMax, mine[0]);
  return {top, Combine(ReduceKind::kSum, mine[1] * exp(mine[0] - top))};
}

Row::Moments Row::MeanAndVariance() {
  if (share_.held > 0) {
    const Val mean = Sum([](Val x) { return x; }) / length();
    return {mean, Sum([&](Val x) { return (x - mean) * (x - mean); }) / length()};
  }
  const auto step = [&](const Vals& so_far, Val x) {
    const Val count = so_far[0] + 1.0, off = x - so_far[1];
    const Val mean = so_far[1] + off * (1.0 / count);
    return Vals{count, mean, so_far[2] + off * (x - mean)};
  };
  const Vals mine = Fold({OfRow(0), Literal(0), Literal(0)}, step);
  const Val mean = Combine(ReduceKind::kSum, mine[1] * mine[0]) / length();
  const Val off = mine[1] - mean;
  return {mean, Combine(ReduceKind::kSum, mine[2] + off * off * mine[0]) / length()};
}

void Row::StoreVector(const Dim& vector, Val x, absl::FunctionRef<Val(Val x, Operands of)> f) {
  const Dims index = Index(vector);
  const auto operand = [&](int k) {
    const ir::Type& type = m_.region.anchor_inputs()[static_cast<size_t>(k)];
    return m_.e.At(k, BroadcastIndex(index, type.shape()), lanes());
  };
  m_.e.Finish(index, f(x ? x : operand(0), operand), lanes());
}

void Row::Store(absl::FunctionRef<Val(Val x, Operands of)> f) {
  Builder& b = m_.b;
  if (share_.held > 0) {
    for (const Held& h : HeldVectors())
      IfInside(b, h.at.inside, [&] { StoreVector(h.at.at, h.x, f); });
    return;
  }
  b.For(Vectors(), {}, [&](Val i, const Vals&) {
    StoreVector(m_.e.Coordinate(i, LastIndex(VectorCount())), {}, f);
    return Vals{};
  });
}

Builder::Range Row::Vectors() {
  return {m_.e.Value(share_.first), m_.b.Scalar(VectorCount()), m_.b.Int(share_.step),
          Builder::Range::kNot};
}

SerialRows SerialRows::Defaults(const RowSpace& space, const Region& r) {
  SerialRows t;
  (space.last() ? t.elements : t.rows) =
      LanesFor(space.last() ? space.inner.back() : space.outer.back());
  t.held = space.length().max() * t.rows <= HeldUnasked(r.caps());
  return t;
}

Verdict SerialRows::Fits(const RowSpace& space, const Region& r) const {
  if (rows > 1 && elements > 1) return Verdict::No("vectors run along one axis");
  if (space.rows().divisor() % rows != 0 || space.length().divisor() % elements != 0)
    return Verdict::No("vectors do not divide the rows");
  if (held && space.length().max() * rows > MostHeld(r.caps()))
    return Verdict::No("rows do not fit registers");
  return WorkgroupFits(workgroup, r.caps());
}

Program SerialRows::Emit(const RowFormula& formula, const Region& r) const {
  const RowSpace space = formula.space(r);
  const int across = static_cast<int>(rows), along = static_cast<int>(elements);
  Emission m(r, fmt::format("{}_serial_{}x{}{}", formula.name, across, along, held ? "_held" : ""),
             {static_cast<uint32_t>(workgroup), 1, 1});
  m.Guarded(m.Invocations(FloorDiv(space.rows(), across)), [&](const Dim& at) {
    Row row(m, space,
            {.row = at * across + m.e.Lane(across),
             .across = across,
             .along = along,
             .held = held ? space.length().max() / along : 0});
    formula.emit(row);
  });
  return OneLaunch(std::move(m).Take());
}

SubgroupRows SubgroupRows::Defaults(const RowSpace& space, const Region& r) {
  SubgroupRows t{.elements = space.last() ? LanesFor(space.inner.back()) : 1};
  t.held =
      Split{space, t.elements, r.caps().narrow_subgroup_size()}.numbers() <= HeldUnasked(r.caps());
  return t;
}

Verdict SubgroupRows::Fits(const RowSpace& space, const Region& r) const {
  const int64_t size = r.caps().narrow_subgroup_size();
  if (Verdict v = Split{space, elements, size}.Fits(held, r.caps()); !v) return v;
  if (space.length().max() < kShortRow) return Verdict::No("rows are short");
  if (!r.caps().subgroup_arithmetic || size == 1)
    return Verdict::No("the device has no sums of subgroups whose size it tells");
  if (BitWidth(AccumulatorOf(r.anchor_output().dtype()).elem) != 32)
    return Verdict::No("sums have 32 bits in subgroups");
  if (workgroup % size != 0) return Verdict::No("subgroups do not divide the workgroup");
  if (space.rows().divisor() % rows != 0)
    return Verdict::No("subgroups have unlike numbers of rows");
  if (!held && (r.caps().runs_on_cpu || space.length().max() >= kLongRow))
    return Verdict::No("rows are read again, and others are as quick at that");
  return WorkgroupFits(workgroup, r.caps());
}

Program SubgroupRows::Emit(const RowFormula& formula, const Region& r) const {
  const RowSpace space = formula.space(r);
  const int64_t size = r.caps().narrow_subgroup_size();
  Emission m(r,
             fmt::format("{}_subgroup_{}x{}{}", formula.name, rows, elements, held ? "_held" : ""),
             {static_cast<uint32_t>(workgroup), 1, 1});
  m.launch.kernel.subgroup = static_cast<uint32_t>(size);
  m.EachSubgroup(FloorDiv(space.rows(), rows), [&](const Dim& at) {
    for (int64_t i = 0; i < rows; ++i) {
      const Dim next = at * rows + i;
      Row::Share share = Split{space, elements, size}.Of(m, next, BuiltinKind::kLane, held);
      share.combine = [&m](ReduceKind kind, Val v) { return m.b.SubgroupReduce(kind, v); };
      Row row(m, space, std::move(share));
      formula.emit(row);
    }
  });
  return OneLaunch(std::move(m).Take());
}

WorkgroupRows WorkgroupRows::Defaults(const RowSpace& space, const Region& r) {
  WorkgroupRows t{.workgroup = 128, .elements = space.last() ? LanesFor(space.inner.back()) : 1};
  const auto holds = [&] {
    return Split{space, t.elements, t.workgroup}.numbers() <= HeldUnasked(r.caps());
  };
  if (!holds() && WorkgroupFits(256, r.caps())) t.workgroup = 256;
  t.held = holds();
  if (!t.held) t.workgroup = 128;
  return t;
}

Verdict WorkgroupRows::Fits(const RowSpace& space, const Region& r) const {
  if (Verdict v = Split{space, elements, workgroup}.Fits(held, r.caps()); !v) return v;
  if (space.length().max() < kLongRow) return Verdict::No("rows are short");
  if (r.caps().runs_on_cpu && space.rows().min() >= kFewRows)
    return Verdict::No("barriers are dear and rows are many");
  return WorkgroupFits(
      workgroup, r.caps(),
      WorkgroupReduction::SharedBytes(workgroup, AccumulatorOf(r.anchor_output().dtype())));
}

Program WorkgroupRows::Emit(const RowFormula& formula, const Region& r) const {
  const RowSpace space = formula.space(r);
  Emission m(r,
             fmt::format("{}_rows_{}x{}{}", formula.name, workgroup, elements, held ? "_held" : ""),
             {static_cast<uint32_t>(workgroup), 1, 1});
  m.Guarded(m.Workgroups(space.rows()), [&](const Dim& at) {
    WorkgroupReduction together(m, AccumulatorOf(r.anchor_output().dtype()));
    Row::Share share = Split{space, elements, workgroup}.Of(m, at, BuiltinKind::kLocalX, held);
    share.combine = [&](ReduceKind kind, Val v) { return together.Reduce(kind, v); };
    Row row(m, space, std::move(share));
    formula.emit(row);
  });
  return OneLaunch(std::move(m).Take());
}

}  // namespace forge::codegen
