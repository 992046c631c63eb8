// SPDX-License-Identifier: Apache-2.0
// Steps of recurrent networks: a workgroup computes all steps of some rows, with their states in
// shared memory. Invocations have adjacent units of all these rows, so that they load adjacent
// weights, each once for all rows.
#include "ir/ops/recurrent/recurrent_steps.h"

#include <algorithm>

#include "codegen/kernel/functions.h"
#include "codegen/schedules/emission.h"

namespace forge::codegen {
namespace {

using ir::Dim;

using ir::kFirstCell, ir::kFirstHidden, ir::kGateSums, ir::kPeepholes, ir::kStepBias,
    ir::kStepLengths, ir::kStepWeight;

constexpr int64_t kMostCells = 16;  // units of rows, of an invocation; sums stay in registers

struct RecurrentSteps {
  int64_t workgroup = 64;
  int64_t lanes = 1;
  int64_t rows = 1;
  static constexpr Field kFields[] = {
      FieldOf<&RecurrentSteps::workgroup>("workgroup", "Invocations in a workgroup.",
                                          "32|64|128|256"),
      FieldOf<&RecurrentSteps::lanes>("lanes", "Adjacent units, loaded at once.", "1|2|4"),
      FieldOf<&RecurrentSteps::rows>("rows", "To a workgroup.", "1|2|4")};
};

enum class Cell : uint8_t { kLstm, kGru, kRnn };

// The anchor, whatever its cell.
struct Recurrence {
  std::string_view name;
  Cell cell = Cell::kLstm;
  bool reverse = false;
  bool reset_before = false;  // of a GRU
  bool relu = false;          // of an RNN
  Dim steps, rows, units;     // s, n and h of the op's signature
  DType dtype = DType::kF32;

  int64_t hidden() const { return units.constant(); }
  Type type() const { return AccumulatorOf(dtype); }
  // The states twice, so that a step reads one and writes the other; and r h.
  std::vector<SharedArray> Shared(int64_t rows_at_once) const {
    std::vector<SharedArray> out{{type(), 2 * hidden() * rows_at_once}};
    if (reset_before) out.push_back({type(), hidden() * rows_at_once});
    return out;
  }
};

std::optional<Recurrence> RecurrenceOf(const Region& r) {
  Recurrence c;
  if (const auto* lstm = r.AnchorAs<ir::LstmSteps>())
    c = {.name = "lstm_steps", .cell = Cell::kLstm, .reverse = lstm->reverse};
  else if (const auto* gru = r.AnchorAs<ir::GruSteps>())
    c = {.name = "gru_steps",
         .cell = Cell::kGru,
         .reverse = gru->reverse,
         .reset_before = !gru->reset_after};
  else if (const auto* rnn = r.AnchorAs<ir::RnnSteps>())
    c = {.name = "rnn_steps",
         .cell = Cell::kRnn,
         .reverse = rnn->reverse,
         .relu = rnn->activation == ir::RnnActivation::kRelu};
  else
    return std::nullopt;
  const ir::Dims& y = r.anchor_output().shape();
  c.steps = y[0], c.rows = y[1], c.units = y[2];
  c.dtype = r.anchor_output().dtype();
  return c;
}

// Vectors of units that an invocation has.
int64_t VectorsOf(const Recurrence& c, const RecurrentSteps& t) {
  return CeilDiv(c.units, t.lanes * t.workgroup).max();
}

RecurrentSteps Defaults(const Region& r, const Recurrence& c) {
  const Caps& caps = r.caps();
  RecurrentSteps t{.workgroup = 32, .lanes = LanesFor(c.units)};
  const int64_t enough = caps.runs_on_cpu ? 64 : 256;
  const auto grow_to = [&](int64_t most, int64_t units_of_one) {
    while (t.workgroup < most && t.workgroup * units_of_one < c.units.max() &&
           WorkgroupFits(t.workgroup * 2, caps))
      t.workgroup *= 2;
  };
  grow_to(enough, t.lanes);
  grow_to(256, kMostCells);
  // Rows share the loads of weights, where enough workgroups are left.
  const int64_t workgroups = caps.runs_on_cpu ? 2 : 64;
  while (t.rows < 4 && c.rows.min() >= t.rows * 2 * workgroups &&
         VectorsOf(c, t) * t.lanes * t.rows * 2 <= kMostCells)
    t.rows *= 2;
  return t;
}

Verdict Fits(const Region& r, const Recurrence& c, const RecurrentSteps& t) {
  if (!c.units.is_constant()) return Verdict::No("the number of units is open");
  if (LanesFor(c.units) % t.lanes != 0) return Verdict::No("vectors do not divide the units");
  if (VectorsOf(c, t) * t.lanes * t.rows > kMostCells)
    return Verdict::No(
        fmt::format("{} units are too many for {} invocations", c.hidden(), t.workgroup));
  return WorkgroupFits(t.workgroup, r.caps(), c.Shared(t.rows));
}

// All steps of the rows of a workgroup. Lists of values have one for each cell: the vectors of
// units of the first row, then of the next.
class RowsOfSteps {
 public:
  RowsOfSteps(Emission& m, const Recurrence& c, const RecurrentSteps& t)
      : m_(m),
        b_(m.b),
        c_(c),
        t_(t),
        lanes_(static_cast<int>(t.lanes)),
        hidden_(m.AddShared("state", c.Shared(t.rows)[0])) {
    if (c.reset_before) reset_ = m.AddShared("reset", c.Shared(t.rows)[1]);
  }
  void Run(const Dim& rows);  // the number of the workgroup's rows

 private:
  // What a step reads.
  struct Before {
    Dim step;
    std::span<const Val> hidden, cell;
    Val first;  // of the states in shared memory
  };
  bool Has(int operand) const {
    const auto& in = m_.region.anchor_inputs();
    return static_cast<size_t>(operand) < in.size() && in[static_cast<size_t>(operand)];
  }
  size_t cells() const { return row_.size() * unit_.size(); }
  const Position& RowOf(size_t cell) const { return row_[cell / unit_.size()]; }
  const Position& UnitOf(size_t cell) const { return unit_[cell % unit_.size()]; }
  Val Zero() { return b_.Literal(c_.type().Lanes(lanes_), 0); }
  // The columns of a vector of units in gate `gate`.
  Dim Column(int64_t gate, const Position& unit) {
    return c_.units * gate + unit.at * t_.lanes + m_.e.Lane(lanes_);
  }
  // Elements of an operand [n, h], or zeros.
  Vals StateOf(int operand);
  // The vectors in shared memory times the columns of gates first .. end - 1, plus bias: by gate,
  // then by cell.
  Vals Products(uint16_t vectors, Val at, int64_t first, int64_t end);
  Vals Next(const Before& s);  // the state after the step
  Vals NextLstm(const Before& s);
  Vals NextGru(const Before& s);
  Vals NextRnn(const Before& s);
  Val GateSum(const Before& s, int64_t gate, size_t cell) {
    return m_.e.At(kGateSums, {s.step, RowOf(cell).at, Column(gate, UnitOf(cell))}, lanes_);
  }
  Val Peephole(int64_t part, size_t cell, Val sum, Val state) {
    if (!Has(kPeepholes)) return sum;
    return fma(m_.e.At(kPeepholes, {Column(part, UnitOf(cell))}, lanes_), state, sum);
  }
  void IfReal(size_t cell, absl::FunctionRef<void()> body) {
    IfInside(b_, Both(RowOf(cell).inside, UnitOf(cell).inside), body);
  }
  void StoreShared(uint16_t view, Val first, const Vals& of_cells);
  void FinishStates(const Vals& last);
  static Val Sigmoid(Val x) { return 1.0 / (1.0 + exp(-x)); }

  Emission& m_;
  Builder& b_;
  const Recurrence& c_;
  const RecurrentSteps& t_;
  int lanes_;
  uint16_t hidden_, reset_ = 0;       // shared views
  std::vector<Position> row_, unit_;  // of this invocation; units in vectors
};

Vals RowsOfSteps::StateOf(int operand) {
  Vals out;
  for (size_t i = 0; i < cells(); ++i)
    out.push_back(Has(operand) ? m_.e.At(operand, {RowOf(i).at, Column(0, UnitOf(i))}, lanes_)
                               : Zero());
  return out;
}

Vals RowsOfSteps::Products(uint16_t vectors, Val at, int64_t first, int64_t end) {
  Vals sums;
  for (int64_t gate = first; gate < end; ++gate)
    for (size_t i = 0; i < cells(); ++i)
      sums.push_back(Has(kStepBias) ? m_.e.At(kStepBias, {Column(gate, UnitOf(i))}, lanes_)
                                    : Zero());
  return m_.Loop(c_.units, std::move(sums), [&](const Dim& k, Vals so_far) {
    Vals x;
    for (size_t row = 0; row < row_.size(); ++row)
      x.push_back(b_.Load(vectors, at + m_.e.Value(c_.units * static_cast<int64_t>(row) + k)));
    size_t i = 0;
    for (int64_t gate = first; gate < end; ++gate)
      for (size_t cell = 0; cell < cells(); ++cell, ++i) {
        const Val weight = m_.e.At(kStepWeight, {k, Column(gate, UnitOf(cell))}, lanes_);
        so_far[i] = fma(splat(x[cell / unit_.size()], lanes_), weight, so_far[i]);
      }
    return so_far;
  });
}

Vals RowsOfSteps::NextLstm(const Before& s) {
  const Vals products = Products(hidden_, s.first, 0, 4);
  Vals hidden, cell;
  for (size_t i = 0; i < cells(); ++i) {
    const auto sum = [&](int64_t gate) {
      return GateSum(s, gate, i) + products[static_cast<size_t>(gate) * cells() + i];
    };
    const Val input = Sigmoid(Peephole(0, i, sum(0), s.cell[i]));
    const Val forget = Sigmoid(Peephole(1, i, sum(1), s.cell[i]));
    const Val candidate = tanh(sum(2));
    cell.push_back(fma(forget, s.cell[i], input * candidate));
    const Val output = Sigmoid(Peephole(2, i, sum(3), cell[i]));
    hidden.push_back(output * tanh(cell[i]));
  }
  hidden.insert(hidden.end(), cell.begin(), cell.end());
  return hidden;
}

Vals RowsOfSteps::NextGru(const Before& s) {
  Vals products = Products(hidden_, s.first, 0, c_.reset_before ? 2 : 3);
  Vals reset, update;
  for (size_t i = 0; i < cells(); ++i) {
    reset.push_back(Sigmoid(GateSum(s, 0, i) + products[i]));
    update.push_back(Sigmoid(GateSum(s, 1, i) + products[cells() + i]));
  }
  Vals inner;
  if (c_.reset_before) {
    Vals kept;
    for (size_t i = 0; i < cells(); ++i) kept.push_back(reset[i] * s.hidden[i]);
    StoreShared(reset_, b_.Int(0), kept);
    b_.Barrier();
    inner = Products(reset_, b_.Int(0), 2, 3);
  } else {
    for (size_t i = 0; i < cells(); ++i) inner.push_back(reset[i] * products[2 * cells() + i]);
  }
  Vals hidden;
  for (size_t i = 0; i < cells(); ++i) {
    const Val fresh = tanh(GateSum(s, 2, i) + inner[i]);
    hidden.push_back(fma(1.0 - update[i], fresh, update[i] * s.hidden[i]));
  }
  return hidden;
}

Vals RowsOfSteps::NextRnn(const Before& s) {
  Vals hidden = Products(hidden_, s.first, 0, 1);
  for (size_t i = 0; i < cells(); ++i) {
    const Val sum = GateSum(s, 0, i) + hidden[i];
    hidden[i] = c_.relu ? max(sum, 0.0) : tanh(sum);
  }
  return hidden;
}

Vals RowsOfSteps::Next(const Before& s) {
  if (c_.cell == Cell::kLstm) return NextLstm(s);
  return c_.cell == Cell::kGru ? NextGru(s) : NextRnn(s);
}

void RowsOfSteps::StoreShared(uint16_t view, Val first, const Vals& of_cells) {
  for (size_t i = 0; i < cells(); ++i)
    IfReal(i, [&] {
      const auto row = static_cast<int64_t>(i / unit_.size());
      Vals elements;
      Unpack(of_cells[i], elements);
      for (int64_t lane = 0; lane < t_.lanes; ++lane) {
        const Dim at = c_.units * row + UnitOf(i).at * t_.lanes + lane;
        b_.Store(view, first + m_.e.Value(at), elements[static_cast<size_t>(lane)]);
      }
    });
}

void RowsOfSteps::FinishStates(const Vals& last) {
  for (size_t k = 0; k < last.size(); ++k) {
    const size_t i = k % cells();
    IfReal(i, [&] {
      m_.e.Finish({RowOf(i).at, Column(0, UnitOf(i))}, last[k], lanes_,
                  1 + static_cast<int>(k / cells()));
    });
  }
}

void RowsOfSteps::Run(const Dim& rows) {
  const Dim local = m_.e.Coordinate(b_.Builtin(BuiltinKind::kLocalX), t_.workgroup - 1);
  const Dim vectors = FloorDiv(c_.units, t_.lanes);
  for (int64_t row = 0; row < t_.rows; ++row)
    row_.push_back(Guard(m_, rows * t_.rows + row, c_.rows));
  for (int64_t first = 0; first < vectors.max(); first += t_.workgroup)
    unit_.push_back(Guard(m_, local + first, vectors));
  Vals state = StateOf(kFirstHidden);
  StoreShared(hidden_, b_.Int(0), state);
  if (c_.cell == Cell::kLstm)
    for (const Val& v : StateOf(kFirstCell)) state.push_back(v);
  Vals lengths;
  for (const Position& row : row_)
    if (Has(kStepLengths)) lengths.push_back(convert(m_.e.At(kStepLengths, {row.at}), DType::kI32));
  const auto half = static_cast<double>(c_.hidden() * t_.rows);
  b_.Barrier();
  const auto step = [&](Val i, const Vals& before) {
    const Dim trip = m_.e.Coordinate(i, LastIndex(c_.steps));
    const Dim at = c_.reverse ? c_.steps - 1 - trip : trip;
    const Val odd = i & 1.0;
    const std::span<const Val> all(before);
    Vals next = Next({at, all.first(cells()), all.subspan(cells()), odd * half});
    Vals y(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(cells()));
    for (size_t k = 0; !lengths.empty() && k < next.size(); ++k) {
      const Val runs = m_.e.Value(at) < lengths[k % cells() / unit_.size()];
      if (k < cells()) y[k] = select(runs, y[k], 0.0);
      next[k] = select(runs, next[k], before[k]);
    }
    StoreShared(hidden_, (1.0 - odd) * half, next);
    for (size_t k = 0; k < cells(); ++k)
      IfReal(k, [&] { m_.e.Finish({at, RowOf(k).at, Column(0, UnitOf(k))}, y[k], lanes_); });
    b_.Barrier();
    return next;
  };
  FinishStates(
      b_.For({b_.Int(0), b_.Scalar(c_.steps), b_.Int(1), Builder::Range::kNot}, state, step));
}

Program Emit(const Region& r, const Recurrence& c, const RecurrentSteps& t) {
  Emission m(r, fmt::format("{}_{}x{}x{}", c.name, t.workgroup, t.lanes, t.rows),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  RowsOfSteps steps(m, c, t);
  m.Guarded(m.Workgroups(CeilDiv(c.rows, t.rows)), [&](const Dim& rows) { steps.Run(rows); });
  return OneLaunch(std::move(m).Take());
}

}  // namespace

const Schedule kRecurrentSteps =
    ScheduleOn<RecurrentSteps, RecurrenceOf, Defaults, Fits, Emit>("recurrent_steps");

}  // namespace forge::codegen
