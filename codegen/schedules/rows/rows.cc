// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/rows/rows.h"

#include <limits>

#include "ir/op/axes.h"

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

// What an invocation has of a row.
struct RowPart {
  Scope by;
  const RowFormula& formula;
  const RowSpace& space;
  const RowTiles& t;
  const Caps& caps;
  // That have a row together.
  int64_t invocations() const {
    if (by == Scope::kInvocation) return 1;
    return by == Scope::kSubgroup ? caps.narrow_subgroup_size() : t.workgroup;
  }
  int64_t across() const { return by == Scope::kInvocation ? t.rows : 1; }  // rows at once
  // Vectors that it sees at most.
  int64_t vectors() const {
    const int64_t all = space.length().max() / t.elements;
    return all / invocations() + (all % invocations() != 0 ? 1 : 0);
  }
  int64_t numbers() const {  // held, where they are
    return vectors() * t.elements * across() * static_cast<int64_t>(formula.numbers);
  }
  Row::Share Of(const Dim& row) const {
    return {.row = row,
            .across = static_cast<int>(across()),
            .along = static_cast<int>(t.elements),
            .step = invocations(),
            .held = t.held ? vectors() : 0};
  }
};

// Rows that are too short or too many for `by` go to fewer invocations each.
Verdict SizesFit(const RowPart& part, const Region& r) {
  const auto& [by, formula, space, t, caps] = part;
  if (by == Scope::kSubgroup) {
    if (space.length().max() < kShortRow) return Verdict::No("rows are short");
    if (!caps.subgroup_arithmetic || part.invocations() == 1)
      return Verdict::No("the device has no sums of subgroups whose size it tells");
    if (BitWidth(AccumulatorOf(r.anchor_output().dtype()).elem) != 32)
      return Verdict::No("sums have 32 bits in subgroups");
    if (t.workgroup % part.invocations() != 0)
      return Verdict::No("subgroups do not divide the workgroup");
    if (!t.held && !caps.subgroup_reconvergence)
      return Verdict::No("subgroups may not meet again behind the loop over a row");
    if (!t.held && (caps.runs_on_cpu || space.length().max() >= kLongRow))
      return Verdict::No("rows are read again, and others are as quick at that");
  }
  if (by == Scope::kWorkgroup) {
    if (t.rows > 1) return Verdict::No("a workgroup has one row");
    if (space.length().max() < kLongRow) return Verdict::No("rows are short");
    if (caps.runs_on_cpu && space.rows().min() >= kFewRows)
      return Verdict::No("barriers are dear and rows are many");
  }
  return Verdict::Yes();
}

}  // namespace

RowSpace::RowSpace(const Region& r, std::span<const int64_t> axes) {
  const Dims& shape = r.anchor_inputs()[0].shape();
  within.assign(shape.size(), false);
  const auto normal = ir::NormalAxes(axes, static_cast<int64_t>(shape.size()));
  FORGE_CHECK(normal.ok());
  for (int64_t a : *normal) within[static_cast<size_t>(a)] = true;
  for (size_t i = 0; i < shape.size(); ++i) (within[i] ? inner : outer).push_back(shape[i]);
}

int64_t RowSpace::lanes() const {
  return within.empty() ? 1 : LanesFor(last() ? inner.back() : outer.back());
}

Dims RowSpace::Index(const Dim& row, const Dim& element) const {
  const Dims outside = Unflatten(row, outer), inside = Unflatten(element, inner);
  Dims index;
  size_t o = 0, i = 0;
  for (bool is : within) index.push_back(is ? inside[i++] : outside[o++]);
  return index;
}

Row::Row(Emission& m, const RowSpace& space, const RowFormula& formula, Share share)
    : m_(m), space_(space), formula_(formula), share_(std::move(share)) {}

Val Row::Literal(double v, int lanes) {
  return m_.b.Literal(AccumulatorOf(m_.region.anchor_output().dtype()).Lanes(lanes), v);
}

Dims Row::Index(const Dim& vector) {
  return space_.Index(share_.row, vector * share_.along + m_.e.Lane(share_.along));
}

const std::vector<Row::Held>& Row::HeldVectors() {
  while (static_cast<int64_t>(held_.size()) < share_.held) {
    const Dim next = share_.first + static_cast<int64_t>(held_.size()) * share_.step;
    const Position at = Guard(m_, next, VectorCount());
    held_.push_back({at, NumbersAt(Index(at.at))});
  }
  return held_;
}

Val Row::OperandAt(int operand, const Dims& index) {
  const ir::Type& type = region().anchor_inputs()[static_cast<size_t>(operand)];
  return m_.e.At(operand, BroadcastIndex(index, type.shape()), lanes());
}

Vals Row::NumbersAt(const Dims& index) {
  if (formula_.of_element == nullptr) return {OperandAt(0, index)};
  return formula_.of_element(region(), [&](int k) { return OperandAt(k, index); });
}

Vals Row::Fold(Vals start, absl::FunctionRef<Vals(const Vals&, Numbers)> f) {
  if (share_.held > 0) {
    for (const Held& h : HeldVectors()) {
      const Vals next = f(start, h.numbers);
      for (size_t i = 0; i < start.size(); ++i)
        start[i] = h.at.inside ? select(h.at.inside, next[i], start[i]) : next[i];
    }
    return start;
  }
  return m_.b.For(Vectors(), std::move(start), [&](Val i, const Vals& carried) {
    const Dim vector = m_.e.Coordinate(i, LastIndex(VectorCount()));
    return f(carried, NumbersAt(Index(vector)));
  });
}

Val Row::OverLanes(ReduceKind kind, Val v) const {
  return v.type().lanes > share_.across ? CombineLanes(kind, v) : v;
}

Val Row::Combine(ReduceKind kind, Val mine) {
  mine = OverLanes(kind, mine);
  return share_.combine ? share_.combine(kind, mine) : mine;
}

Vals Row::Sums(size_t count, absl::FunctionRef<Vals(Numbers)> f) {
  Vals sums = Fold(Vals(count, Literal(0)), [&](const Vals& so_far, Numbers x) {
    Vals next = f(x);
    next.resize(count);
    for (size_t i = 0; i < count; ++i) next[i] = so_far[i] + next[i];
    return next;
  });
  for (Val& s : sums) s = Combine(ReduceKind::kSum, s);
  return sums;
}

Val Row::Sum(absl::FunctionRef<Val(Val)> f) {
  return Sums(1, [&](Numbers x) { return Vals{f(x[0])}; })[0];
}

Row::Exponentials Row::SumExponentials() {
  const double least = LowestOf(AccumulatorOf(m_.region.anchor_output().dtype()).elem);
  if (share_.exponentials) return *share_.exponentials;
  if (share_.held > 0) {
    const auto larger = [](const Vals& top, Numbers x) { return Vals{max(top[0], x[0])}; };
    const Val top = Combine(ReduceKind::kMax, Fold({Literal(least)}, larger)[0]);
    return {top, Sum([&](Val x) { return exp(x - top); })};
  }
  const auto step = [&](const Vals& so_far, Numbers numbers) {
    const Val x = numbers[0];
    const Val top = max(so_far[0], OverLanes(ReduceKind::kMax, x));
    const Val shrunk = so_far[1] * exp(so_far[0] - top);
    return Vals{top, shrunk + exp(x - top)};
  };
  const Vals mine = Fold({Literal(least, share_.across), Literal(0)}, step);
  const Val top = Combine(ReduceKind::kMax, mine[0]);
  return {top, Combine(ReduceKind::kSum, mine[1] * exp(mine[0] - top))};
}

Row::Moments Row::MeanAndVariance() {
  if (share_.held > 0) {
    const Val mean = Sum([](Val x) { return x; }) / length();
    return {mean, Sum([&](Val x) { return (x - mean) * (x - mean); }) / length()};
  }
  const auto step = [&](const Vals& so_far, Numbers numbers) {
    const Val x = numbers[0], count = so_far[0] + 1.0, off = x - so_far[1];
    const Val mean = so_far[1] + off * (1.0 / count);
    return Vals{count, mean, so_far[2] + off * (x - mean)};
  };
  const Vals mine = Fold({Literal(0, share_.across), Literal(0), Literal(0)}, step);
  const Val mean = Combine(ReduceKind::kSum, mine[1] * mine[0]) / length();
  const Val off = mine[1] - mean;
  return {mean, Combine(ReduceKind::kSum, mine[2] + off * off * mine[0]) / length()};
}

void Row::Store(absl::FunctionRef<Val(Numbers, Operands of)> f) {
  const auto store = [&](const Dims& index, Numbers x) {
    m_.e.Finish(index, f(x, [&](int k) { return OperandAt(k, index); }), lanes());
  };
  for (const Held& h : HeldVectors())
    IfInside(m_.b, h.at.inside, [&] { store(Index(h.at.at), h.numbers); });
  if (share_.held > 0) return;
  m_.b.For(Vectors(), {}, [&](Val i, const Vals&) {
    const Dims index = Index(m_.e.Coordinate(i, LastIndex(VectorCount())));
    store(index, NumbersAt(index));
    return Vals{};
  });
}

void Row::IfFirst(absl::FunctionRef<void()> body) {
  IfInside(m_.b, share_.combine ? m_.e.Value(share_.first) < 1.0 : Val{}, body);
}

void Row::StoreNumber(int result, Val number) {
  number = splat(number, lanes());
  if (share_.across == 1) number = m_.b.Extract(number, 0);
  IfFirst([&] { m_.e.Finish(space_.Index(share_.row, 0), number, share_.across, result); });
}

void Row::Keep(std::span<const Val> numbers) {
  IfFirst([&] {
    for (size_t i = 0; i < numbers.size(); ++i)
      m_.e.StoreScratch(0, space_.rows() * static_cast<int64_t>(i) + share_.row,
                        m_.b.Extract(splat(numbers[i], lanes()), 0));
  });
}

Builder::Range Row::Vectors() {
  return {m_.e.Value(share_.first), m_.e.Value(share_.end.value_or(VectorCount())),
          m_.b.Int(share_.step), Builder::Range::kNot};
}

RowTiles DefaultRowTiles(const Region& r, const SharedRows& rows) {
  const auto& [by, formula, space] = rows;
  RowTiles t;
  if (space.last())
    t.elements = space.lanes();
  else if (by == Scope::kInvocation)
    t.rows = space.lanes();
  const auto holds = [&](int64_t workgroup) {
    t.workgroup = workgroup;
    return RowPart{by, formula, space, t, r.caps()}.numbers() <= HeldUnasked(r.caps());
  };
  if (by != Scope::kWorkgroup) {
    t.held = holds(64);
    return t;
  }
  t.held = holds(128) || (WorkgroupFits(256, r.caps()) && holds(256));
  if (!t.held) t.workgroup = 128;
  return t;
}

Verdict RowTilesFit(const Region& r, const SharedRows& rows, const RowTiles& t) {
  const auto& [by, formula, space] = rows;
  const RowPart part{by, formula, space, t, r.caps()};
  if (by != Scope::kInvocation && !space.last()) return Verdict::No("rows lie side by side");
  if (part.across() > 1 && t.elements > 1) return Verdict::No("vectors run along one axis");
  if (space.rows().divisor() % t.rows != 0 || space.length().divisor() % t.elements != 0)
    return Verdict::No("vectors do not divide the rows");
  if (t.held && part.numbers() > MostHeld(r.caps()))
    return Verdict::No("rows do not fit registers");
  if (Verdict v = SizesFit(part, r); !v) return v;
  const Type type = AccumulatorOf(r.anchor_output().dtype());
  if (by != Scope::kWorkgroup) return WorkgroupFits(t.workgroup, r.caps());
  return WorkgroupFits(t.workgroup, r.caps(), WorkgroupReduction::Shared(t.workgroup, type));
}

Program EmitRows(const Region& r, const SharedRows& rows, const RowTiles& t) {
  const auto& [by, formula, space] = rows;
  constexpr std::string_view kNames[] = {"serial", "subgroup", "rows"};
  const RowPart part{by, formula, space, t, r.caps()};
  Emission m(r,
             fmt::format("{}_{}_{}x{}{}", formula.name, kNames[static_cast<size_t>(by)],
                         by == Scope::kWorkgroup ? t.workgroup : t.rows, t.elements,
                         t.held ? "_held" : ""),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  const auto emit = [&](const Dim& at, Row::Combiner combine) {
    Row::Share share = part.Of(at);
    if (by != Scope::kInvocation) {
      const Val which =
          m.b.Builtin(by == Scope::kSubgroup ? BuiltinKind::kLane : BuiltinKind::kLocalX);
      share.first = m.e.Coordinate(which, part.invocations() - 1);
    }
    share.combine = std::move(combine);
    Row row(m, space, formula, std::move(share));
    formula.emit(row);
  };
  if (by == Scope::kInvocation) {
    const int across = static_cast<int>(t.rows);
    m.Guarded(m.Invocations(FloorDiv(space.rows(), across)),
              [&](const Dim& at) { emit(at * across + m.e.Lane(across), nullptr); });
  } else if (by == Scope::kSubgroup) {
    m.launch.kernel.subgroup = static_cast<uint32_t>(part.invocations());
    m.EachSubgroup(FloorDiv(space.rows(), t.rows), [&](const Dim& at) {
      for (int64_t i = 0; i < t.rows; ++i)
        emit(at * t.rows + i, [&m](ReduceKind kind, Val v) { return m.b.SubgroupReduce(kind, v); });
    });
  } else {
    m.Guarded(m.Workgroups(space.rows()), [&](const Dim& at) {
      WorkgroupReduction together(m, AccumulatorOf(r.anchor_output().dtype()));
      emit(at, [&](ReduceKind kind, Val v) { return together.Reduce(kind, v); });
    });
  }
  return OneLaunch(std::move(m).Take());
}

}  // namespace forge::codegen
