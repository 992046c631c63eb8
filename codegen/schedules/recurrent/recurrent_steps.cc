// SPDX-License-Identifier: Apache-2.0
// Steps of recurrent networks, with the states in shared memory.
#include "ir/ops/recurrent/recurrent_steps.h"

#include <algorithm>

#include "codegen/schedules/recurrent/unit_rows.h"

namespace forge::codegen {
namespace {
namespace recurrent_steps {

using ir::Dim;

using ir::kFirstCell, ir::kFirstHidden, ir::kGateSums, ir::kPeepholes, ir::kStepBias,
    ir::kStepLengths, ir::kStepWeight;

enum class Cell : uint8_t { kLstm, kGru, kRnn };

// The anchor, whatever its cell.
struct Recurrence {
  std::string_view name;
  Cell cell = Cell::kLstm;
  bool reverse = false;
  bool reset_before = false;  // of a GRU
  bool relu = false;          // of an RNN
  UnitSpace space = {};

  // The states twice, so that a step reads one and writes the other; and r h.
  std::vector<SharedArray> Shared(int64_t rows_at_once) const {
    std::vector<SharedArray> out{{space.type(), 2 * space.hidden() * rows_at_once}};
    if (reset_before) out.push_back({space.type(), space.hidden() * rows_at_once});
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
  c.space = {.steps = y[0], .rows = y[1], .units = y[2], .dtype = r.anchor_output().dtype()};
  return c;
}

UnitTiles Defaults(const Region& r, const Recurrence& c) {
  return DefaultUnitTiles(r.caps(), c.space);
}

Verdict Fits(const Region& r, const Recurrence& c, const UnitTiles& t) {
  if (Verdict v = UnitTilesFit(c.space, t); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps(), c.Shared(t.rows));
}

// All steps of the rows of a workgroup.
class RowsOfSteps : UnitRows {
 public:
  RowsOfSteps(Emission& m, const Recurrence& c, const UnitTiles& t)
      : UnitRows(m, c.space, t),
        m_(m),
        b_(m.b),
        c_(c),
        t_(t),
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
  // The vectors in shared memory times the columns of gates first .. end - 1, plus bias: by gate,
  // then by cell.
  Vals Products(uint16_t vectors, Val at, int64_t first, int64_t end);
  Vals Next(const Before& s);  // the state after the step
  Vals NextLstm(const Before& s);
  Vals NextGru(const Before& s);
  Vals NextRnn(const Before& s);
  Val GateSum(const Before& s, int64_t gate, size_t cell) {
    return AtStep(kGateSums, s.step, gate, cell);
  }
  Val Peephole(int64_t part, size_t cell, Val sum, Val state) {
    if (!Has(kPeepholes)) return sum;
    return fma(m_.e.At(kPeepholes, {Column(part, cell)}, lanes()), state, sum);
  }
  void Share(uint16_t view, Val first, const Vals& of_cells) {
    StoreShared({.view = view, .first = first, .columns = c_.space.units}, of_cells);
  }
  void FinishStates(const Vals& last);

  Emission& m_;
  Builder& b_;
  const Recurrence& c_;
  const UnitTiles& t_;
  uint16_t hidden_, reset_ = 0;  // shared views
};

Vals RowsOfSteps::Products(uint16_t vectors, Val at, int64_t first, int64_t end) {
  Vals sums;
  for (int64_t gate = first; gate < end; ++gate)
    for (size_t i = 0; i < cells(); ++i)
      sums.push_back(Has(kStepBias) ? m_.e.At(kStepBias, {Column(gate, i)}, lanes()) : Zero());
  return m_.Loop(c_.space.units, std::move(sums), [&](const Dim& k, Vals so_far) {
    Vals x;
    for (size_t row = 0; row < rows(); ++row)
      x.push_back(
          b_.Load(vectors, at + m_.e.Value(c_.space.units * static_cast<int64_t>(row) + k)));
    size_t i = 0;
    for (int64_t gate = first; gate < end; ++gate)
      for (size_t cell = 0; cell < cells(); ++cell, ++i) {
        const Val weight = m_.e.At(kStepWeight, {k, Column(gate, cell)}, lanes());
        so_far[i] = fma(splat(x[RowIndex(cell)], lanes()), weight, so_far[i]);
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
    Share(reset_, b_.Int(0), kept);
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

void RowsOfSteps::FinishStates(const Vals& last) {
  for (size_t k = 0; k < last.size(); ++k) {
    const size_t i = k % cells();
    IfReal(i, [&] {
      m_.e.Finish({RowOf(i).at, Column(0, i)}, last[k], lanes(), 1 + static_cast<int>(k / cells()));
    });
  }
}

void RowsOfSteps::Run(const Dim& rows) {
  Take(rows);
  Vals state = StateOf(kFirstHidden);
  Share(hidden_, b_.Int(0), state);
  if (c_.cell == Cell::kLstm)
    for (const Val& v : StateOf(kFirstCell)) state.push_back(v);
  const Vals lengths = LengthsOf(kStepLengths);
  const auto half = static_cast<double>(c_.space.hidden() * t_.rows);
  b_.Barrier();
  const auto step = [&](Val i, const Vals& before) {
    const Dim trip = m_.e.Coordinate(i, LastIndex(c_.space.steps));
    const Dim at = c_.reverse ? c_.space.steps - 1 - trip : trip;
    const Val odd = i & 1.0;
    const std::span<const Val> all(before);
    Vals next = Next({at, all.first(cells()), all.subspan(cells()), odd * half});
    Vals y(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(cells()));
    for (size_t k = 0; !lengths.empty() && k < next.size(); ++k) {
      const Val runs = m_.e.Value(at) < lengths[RowIndex(k % cells())];
      if (k < cells()) y[k] = select(runs, y[k], 0.0);
      next[k] = select(runs, next[k], before[k]);
    }
    Share(hidden_, (1.0 - odd) * half, next);
    for (size_t k = 0; k < cells(); ++k)
      IfReal(k, [&] { m_.e.Finish({at, RowOf(k).at, Column(0, k)}, y[k], lanes()); });
    b_.Barrier();
    return next;
  };
  FinishStates(
      b_.For({b_.Int(0), b_.Scalar(c_.space.steps), b_.Int(1), Builder::Range::kNot}, state, step));
}

Program Emit(const Region& r, const Recurrence& c, const UnitTiles& t) {
  Emission m(r, fmt::format("{}_{}x{}x{}", c.name, t.workgroup, t.lanes, t.rows),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  RowsOfSteps steps(m, c, t);
  m.Guarded(m.Workgroups(CeilDiv(c.space.rows, t.rows)), [&](const Dim& rows) { steps.Run(rows); });
  return OneLaunch(std::move(m).Take());
}

}  // namespace recurrent_steps
}  // namespace

const Schedule kRecurrentSteps =
    ScheduleOn<UnitTiles, recurrent_steps::RecurrenceOf, recurrent_steps::Defaults,
               recurrent_steps::Fits, recurrent_steps::Emit>("recurrent_steps");

}  // namespace forge::codegen
