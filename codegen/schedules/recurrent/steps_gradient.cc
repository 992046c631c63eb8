// SPDX-License-Identifier: Apache-2.0
// Gradients of the steps of recurrent networks, with those of a step's sums in shared memory. The
// cells of an LSTM are computed again, before, and kept in scratch.
#include "ir/ops/recurrent/steps_gradient.h"

#include "codegen/schedules/recurrent/unit_rows.h"
#include "codegen/schedules/split.h"

namespace forge::codegen {
namespace {
namespace steps_gradient {

using ir::Dim;
using Op = ir::StepsGradient;

struct Gradient {
  Op op;
  UnitSpace space;

  int64_t columns() const { return op.gates() * space.hidden(); }  // of the weights
  // Whole vectors: NVRTC joins loads of neighbours, and the one behind the last with them.
  std::vector<SharedArray> Shared(const UnitTiles& t) const {
    return {{space.type(), (columns() * t.rows + 3) / 4 * 4}};
  }
  int64_t ScratchBytes() const {
    const Dim cells = space.steps * space.rows * space.units;
    return op.is_lstm() ? (cells * ElementBytes(space.type())).max() : 0;
  }
};

std::optional<Gradient> GradientOf(const Region& r) {
  const auto* op = r.AnchorAs<Op>();
  if (op == nullptr) return std::nullopt;
  const ir::Dims& sums = r.anchor_output().shape();
  const Dim units = r.anchor_inputs()[Op::kWeight].shape()[0];
  return Gradient{
      *op, {.steps = sums[0], .rows = sums[1], .units = units, .dtype = r.anchor_output().dtype()}};
}

Verdict Fits(const Region& r, const Gradient& g, const UnitTiles& t) {
  if (Verdict v = UnitTilesFit(g.space, t); !v) return v;
  if (g.op.is_lstm()) {
    SplitOperands bound(r);
    bound.after = r.bindings();  // its one launch has all of them
    if (Verdict v = ScratchFits(r, g.ScratchBytes(), bound); !v) return v;
  }
  return WorkgroupFits(t.workgroup, r.caps(), g.Shared(t));
}

UnitTiles Defaults(const Region& r, const Gradient& g) {
  UnitTiles t = DefaultUnitTiles(r.caps(), g.space);
  while (t.rows > 1 && g.space.units.is_constant() && !Fits(r, g, t)) t.rows /= 2;
  return t;
}

class RowsOfGradients : UnitRows {
 public:
  RowsOfGradients(Emission& m, const Gradient& g, const UnitTiles& t)
      : UnitRows(m, g.space, t),
        m_(m),
        b_(m.b),
        g_(g),
        t_(t),
        shared_(m.AddShared("d_sums", g.Shared(t)[0])) {}
  void Run(const Dim& rows);  // the number of the workgroup's rows

 private:
  // The gradients of one step, by part of the sums and by cell; and the shares of those of the
  // states before it that take no weights.
  struct Step {
    std::vector<Vals> parts;
    Vals dh, dc;
  };
  Dim At(const Dim& trip) const { return g_.op.reverse ? g_.space.steps - 1 - trip : trip; }
  Val Sum(const Dim& step, int64_t part, size_t cell) {
    return AtStep(Op::kSums, step, part, cell);
  }
  // Where scratch has the cell before a step; `trip` counts steps in the order in which they run.
  Dim CellPlace(const Dim& trip, size_t cell) const {
    return (trip * g_.space.rows + RowOf(cell).at) * FloorDiv(g_.space.units, t_.lanes) +
           UnitOf(cell).at;
  }
  Val Runs(const Dim& step, size_t cell) {
    return lengths_.empty() ? Val{} : m_.e.Value(step) < lengths_[RowIndex(cell)];
  }
  static Val IfRuns(Val runs, Val then, Val otherwise) {
    return runs ? select(runs, then, otherwise) : then;
  }
  void KeepCells();
  void Lstm(const Dim& trip, size_t cell, Step& s);
  void Gru(const Dim& step, size_t cell, Step& s);
  void Rnn(const Dim& step, size_t cell, Step& s);
  Step GradeStep(const Dim& trip, std::span<const Val> carried);
  // The gradients of the step's sums in shared memory times the transposed weights, by cell.
  Vals Products();

  Emission& m_;
  Builder& b_;
  const Gradient& g_;
  const UnitTiles& t_;
  uint16_t shared_;
  Vals lengths_;
};

void RowsOfGradients::KeepCells() {
  const auto keep = [&](Val i, const Vals& cells) {
    const Dim trip = m_.e.Coordinate(i, LastIndex(g_.space.steps)), step = At(trip);
    Vals next;
    for (size_t c = 0; c < cells.size(); ++c) {
      IfReal(c, [&] { m_.e.StoreScratch(0, CellPlace(trip, c), cells[c]); });
      const Val added = Sigmoid(Sum(step, 0, c)) * tanh(Sum(step, 2, c));
      next.push_back(
          IfRuns(Runs(step, c), fma(Sigmoid(Sum(step, 1, c)), cells[c], added), cells[c]));
    }
    return next;
  };
  b_.For({b_.Int(0), b_.Scalar(g_.space.steps), b_.Int(1), Builder::Range::kNot},
         StateOf(Op::kFirstCell), keep);
}

void RowsOfGradients::Lstm(const Dim& trip, size_t cell, Step& s) {
  const Dim step = At(trip);
  const Val before = m_.e.LoadScratch(0, g_.space.type().Lanes(lanes()), CellPlace(trip, cell));
  const Val input = Sigmoid(Sum(step, 0, cell)), forget = Sigmoid(Sum(step, 1, cell));
  const Val candidate = tanh(Sum(step, 2, cell)), output = Sigmoid(Sum(step, 3, cell));
  const Val after = tanh(fma(forget, before, input * candidate));
  Val &dh = s.dh[cell], &dc = s.dc[cell];
  dc = fma(dh * output, 1.0 - after * after, dc);
  s.parts[0].push_back(dc * candidate * input * (1.0 - input));
  s.parts[1].push_back(dc * before * forget * (1.0 - forget));
  s.parts[2].push_back(dc * input * (1.0 - candidate * candidate));
  s.parts[3].push_back(dh * after * output * (1.0 - output));
  dh = Zero(), dc = dc * forget;
}

void RowsOfGradients::Gru(const Dim& step, size_t cell, Step& s) {
  const Val reset = Sigmoid(Sum(step, 0, cell)), update = Sigmoid(Sum(step, 1, cell));
  const Val product = Sum(step, 2, cell), fresh = tanh(fma(reset, product, Sum(step, 3, cell)));
  Val& dh = s.dh[cell];
  const Val of_fresh = dh * (1.0 - update) * (1.0 - fresh * fresh);
  const Val before = AtStep(Op::kHidden, step, 0, cell);
  s.parts[0].push_back(of_fresh * product * reset * (1.0 - reset));
  s.parts[1].push_back(dh * (before - fresh) * update * (1.0 - update));
  s.parts[2].push_back(of_fresh * reset);
  s.parts[3].push_back(of_fresh);
  dh = dh * update;
}

void RowsOfGradients::Rnn(const Dim& step, size_t cell, Step& s) {
  const Val sum = Sum(step, 0, cell);
  Val& dh = s.dh[cell];
  if (g_.op.cell == ir::StepCell::kRelu) {
    s.parts[0].push_back(select(sum > 0.0, dh, 0.0));
  } else {
    const Val y = tanh(sum);
    s.parts[0].push_back(dh * (1.0 - y * y));
  }
  dh = Zero();
}

RowsOfGradients::Step RowsOfGradients::GradeStep(const Dim& trip, std::span<const Val> carried) {
  const Dim step = At(trip);
  Step s{.parts = std::vector<Vals>(static_cast<size_t>(g_.op.parts())),
         .dh = {carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(cells())},
         .dc = {carried.begin() + static_cast<std::ptrdiff_t>(cells()), carried.end()}};
  for (size_t c = 0; c < cells(); ++c) {
    if (Has(Op::kDy)) s.dh[c] = s.dh[c] + AtStep(Op::kDy, step, 0, c);
    if (g_.op.is_lstm())
      Lstm(trip, c, s);
    else if (g_.op.cell == ir::StepCell::kGru)
      Gru(step, c, s);
    else
      Rnn(step, c, s);
    const Val runs = Runs(step, c);
    for (Vals& part : s.parts) part[c] = IfRuns(runs, part[c], Zero());
    s.dh[c] = IfRuns(runs, s.dh[c], carried[c]);
    if (g_.op.is_lstm()) s.dc[c] = IfRuns(runs, s.dc[c], carried[cells() + c]);
  }
  return s;
}

Vals RowsOfGradients::Products() {
  const int width = LanesFor(Dim(g_.columns()));
  const size_t units = static_cast<size_t>(lanes());
  const Vals none(cells() * units, b_.Literal(g_.space.type().Lanes(width), 0));
  const Dim vectors = g_.columns() / width;
  const Vals sums = m_.Loop(vectors, none, [&](const Dim& k, Vals so_far) {
    Vals x;
    for (size_t row = 0; row < rows(); ++row) {
      Vals of_row;
      for (int64_t lane = 0; lane < width; ++lane)
        of_row.push_back(b_.Load(
            shared_, m_.e.Value(k * width + (static_cast<int64_t>(row) * g_.columns() + lane))));
      x.push_back(width == 1 ? of_row[0] : b_.Pack(g_.space.type().Lanes(width), of_row));
    }
    for (size_t i = 0; i < so_far.size(); ++i) {
      const size_t cell = i / units;
      const Dim unit = UnitOf(cell).at * t_.lanes + static_cast<int64_t>(i % units);
      const Val weight = m_.e.At(Op::kWeight, {unit, k * width + m_.e.Lane(width)}, width);
      so_far[i] = fma(x[RowIndex(cell)], weight, so_far[i]);
    }
    return so_far;
  });
  Vals out;
  for (size_t cell = 0; cell < cells(); ++cell) {
    Vals of_cell;
    for (size_t unit = 0; unit < units; ++unit) {
      Vals elements;
      Unpack(sums[cell * units + unit], elements);
      Val sum = elements[0];
      for (size_t lane = 1; lane < elements.size(); ++lane) sum = sum + elements[lane];
      of_cell.push_back(sum);
    }
    out.push_back(units == 1 ? of_cell[0] : b_.Pack(g_.space.type().Lanes(lanes()), of_cell));
  }
  return out;
}

void RowsOfGradients::Run(const Dim& rows) {
  Take(rows);
  lengths_ = LengthsOf(Op::kLengths);
  if (g_.op.is_lstm()) KeepCells();
  Vals last = StateOf(Op::kLastHidden);
  if (g_.op.is_lstm())
    for (const Val& v : StateOf(Op::kLastCell)) last.push_back(v);
  const auto grade = [&](Val i, const Vals& carried) {
    const Dim trip = g_.space.steps - 1 - m_.e.Coordinate(i, LastIndex(g_.space.steps)),
              step = At(trip);
    Step s = GradeStep(trip, carried);
    for (int64_t part = 0; part < g_.op.parts(); ++part) {
      const Vals& of_part = s.parts[static_cast<size_t>(part)];
      if (part < g_.op.gates())
        StoreShared({.view = shared_, .first = b_.Int(0), .columns = g_.columns(), .part = part},
                    of_part);
      for (size_t c = 0; c < cells(); ++c)
        IfReal(c, [&] { m_.e.Finish({step, RowOf(c).at, Column(part, c)}, of_part[c], lanes()); });
    }
    b_.Barrier();
    const Vals products = Products();  // zeros of a row that does not have the step
    b_.Barrier();
    Vals next;
    for (size_t c = 0; c < cells(); ++c) next.push_back(s.dh[c] + products[c]);
    next.insert(next.end(), s.dc.begin(), s.dc.end());
    return next;
  };
  const Vals first =
      b_.For({b_.Int(0), b_.Scalar(g_.space.steps), b_.Int(1), Builder::Range::kNot}, last, grade);
  for (size_t k = 0; k < first.size(); ++k) {
    const size_t c = k % cells();
    const auto state = static_cast<int64_t>(k / cells());
    IfReal(c, [&] { m_.e.Finish({state, RowOf(c).at, Column(0, c)}, first[k], lanes(), 1); });
  }
}

Program Emit(const Region& r, const Gradient& g, const UnitTiles& t) {
  Emission m(r, fmt::format("steps_gradient_{}x{}x{}", t.workgroup, t.lanes, t.rows),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  RowsOfGradients steps(m, g, t);
  m.Guarded(m.Workgroups(CeilDiv(g.space.rows, t.rows)), [&](const Dim& rows) { steps.Run(rows); });
  Program program = OneLaunch(std::move(m).Take());
  if (g.op.is_lstm()) program.scratch_bytes = {g.ScratchBytes()};
  return program;
}

}  // namespace steps_gradient
}  // namespace

const Schedule kStepsGradient =
    ScheduleOn<UnitTiles, steps_gradient::GradientOf, steps_gradient::Defaults,
               steps_gradient::Fits, steps_gradient::Emit>("steps_gradient");

}  // namespace forge::codegen
