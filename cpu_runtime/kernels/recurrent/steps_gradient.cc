// SPDX-License-Identifier: Apache-2.0
// Gradients of the steps of recurrent networks in floats. As in the steps, each thread has some
// units of all rows; threads wait for each other once in each step.
#include "ir/ops/recurrent/steps_gradient.h"

#include <algorithm>

#include "cpu_runtime/kernels/float_kernel.h"
#include "cpu_runtime/kernels/recurrent/layer_operands.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

using Op = ir::StepsGradient;

struct GradientSteps {
  Op op;
  int64_t steps = 0, rows = 0, units = 0;
  LayerOperands operands = {};

  int64_t panels() const { return (units + kPanel - 1) / kPanel; }
  int64_t columns() const { return op.gates() * units; }  // of the weights
  int64_t sums() const { return op.parts() * units; }     // of a row
  int64_t states() const { return rows * units; }
};

// The arrays in scratch, each behind the one before.
template <class T>
struct GradientArrays {
  GradientArrays(const GradientSteps& r, uint8_t* scratch)
      : weights(reinterpret_cast<T*>(scratch)),
        zeros(weights + r.panels() * r.columns() * kPanel),
        products(zeros + r.panels() * kPanel),
        dh(products + r.panels() * r.rows * kPanel),
        dc(dh + r.states()),
        cells(dc + r.states()) {}
  static uint64_t Bytes(const GradientSteps& r) {
    const int64_t panels = r.panels() * (r.columns() + 1 + r.rows) * kPanel;
    const int64_t cells = r.op.is_lstm() ? r.steps + 1 : 0;
    return sizeof(T) * static_cast<uint64_t>(panels + (2 + cells) * r.states());
  }
  T* weights;   // [gate, panel, row of the gate, unit of the panel], zeros beyond the last unit
  T* zeros;     // [panel, unit of the panel]
  T* products;  // [row, panel, unit of the panel]
  T* dh;        // [row, unit]
  T* dc;        // [row, unit]
  T* cells;     // of LSTM, before each step in the order in which they run: [step + 1, row, unit]
};

template <class T>
class GradientCall final : public AnchorCall {
 public:
  GradientCall(const GradientSteps& r, int threads) : r_(r), threads_(threads) {
    const CellLoops<T>& loops = CellLoopsOf<T>();
    const typename CellLoops<T>::GradientLoop by_cell[] = {
        loops.lstm_gradient, loops.gru_gradient, loops.tanh_gradient, loops.relu_gradient};
    cell_ = by_cell[static_cast<size_t>(r.op.cell)];
  }
  std::string_view kernel() const override { return "steps_gradient"; }
  uint64_t scratch_bytes() const override { return GradientArrays<T>::Bytes(r_); }
  absl::Status Run(const Arguments& a) const override {
    const double step = 2.0 * static_cast<double>(r_.states() * r_.columns());
    const int threads = WorthThreads(step) ? threads_ : 1;
    const GradientArrays<T> at(r_, a.scratch);
    std::fill_n(at.zeros, r_.panels() * kPanel, T(0));
    ParallelTeam(threads, [&](int thread, TeamBarrier& team) {
      const int64_t first = r_.panels() * thread / team.size();
      const int64_t last = r_.panels() * (thread + 1) / team.size();
      Share{*this, a, at, first, last}.Run(team);
    });
    return absl::OkStatus();
  }

 private:
  // The panels of one thread.
  struct Share {
    const GradientCall& call;
    const Arguments& a;
    GradientArrays<T> at;
    int64_t first_panel, last_panel;

    const GradientSteps& r() const { return call.r_; }
    const T* In(Op::Operand operand) const { return r().operands.template In<T>(a, operand); }
    UnitRange own() const { return {r().rows, r().units, first_panel, last_panel}; }
    T* DSums(int64_t step) const {
      return reinterpret_cast<T*>(a.out) + step * r().rows * r().sums();
    }
    T* WeightsOf(int64_t gate, int64_t panel) const {
      return at.weights + (gate * r().panels() + panel) * r().units * kPanel;
    }
    int64_t UnitsOf(int64_t panel) const { return std::min(kPanel, r().units - panel * kPanel); }
    bool Runs(int64_t step, int64_t row) const {
      return step < r().operands.LengthOf(a, row, r().steps);
    }
    void Pack(int64_t panel) const;
    CellGradient<T> StepOf(int64_t i, int64_t step, int64_t panel, int64_t row) const;
    void Cells() const;
    void GradeSums(int64_t i, int64_t step) const;
    void AddProducts(int64_t step) const;
    int64_t Step(int64_t i) const { return r().op.reverse ? r().steps - 1 - i : i; }
    void Run(TeamBarrier& team) const;
  };

  GradientSteps r_;
  int threads_;
  typename CellLoops<T>::GradientLoop cell_;
};

template <class T>
void GradientCall<T>::Share::Pack(int64_t panel) const {
  const T* from = In(Op::kWeight) + panel * kPanel * r().columns();
  const int64_t units = UnitsOf(panel);
  for (int64_t column = 0; column < r().columns(); ++column) {
    const int64_t gate = column / r().units, row = column % r().units;
    T* to = WeightsOf(gate, panel) + row * kPanel;
    for (int64_t unit = 0; unit < units; ++unit) to[unit] = from[unit * r().columns() + column];
    std::fill(to + units, to + kPanel, T(0));
  }
}

template <class T>
CellGradient<T> GradientCall<T>::Share::StepOf(int64_t i, int64_t step, int64_t panel,
                                               int64_t row) const {
  const int64_t unit = panel * kPanel, state = row * r().units + unit;
  const int64_t of_step = step * r().states() + state, sums = row * r().sums() + unit;
  const T *dy = In(Op::kDy), *hidden = In(Op::kHidden);
  T* cell = at.cells + i * r().states() + state;
  return {.units = static_cast<size_t>(UnitsOf(panel)),
          .sums = In(Op::kSums) + step * r().rows * r().sums() + sums,
          .stride = static_cast<size_t>(r().units),
          .before = r().op.is_lstm()    ? cell
                    : hidden != nullptr ? hidden + of_step
                                        : nullptr,
          .after = r().op.is_lstm() ? cell + r().states() : nullptr,
          .dy = dy != nullptr ? dy + of_step : nullptr,
          .d_sums = DSums(step) + sums,
          .dh = at.dh + state,
          .dc = at.dc + state};
}

template <class T>
void GradientCall<T>::Share::Cells() const {
  own().Copy(In(Op::kFirstCell), at.cells);
  for (int64_t i = 0; i < r().steps; ++i)
    for (int64_t panel = first_panel; panel < last_panel; ++panel)
      for (int64_t row = 0; row < r().rows; ++row) {
        const CellGradient<T> s = StepOf(i, Step(i), panel, row);
        if (Runs(Step(i), row))
          CellLoopsOf<T>().lstm_cell(s);
        else
          std::copy_n(s.before, s.units, s.after);
      }
}

template <class T>
void GradientCall<T>::Share::GradeSums(int64_t i, int64_t step) const {
  for (int64_t panel = first_panel; panel < last_panel; ++panel)
    for (int64_t row = 0; row < r().rows; ++row) {
      const CellGradient<T> s = StepOf(i, step, panel, row);
      if (Runs(step, row)) {
        call.cell_(s);
        continue;
      }
      for (int64_t part = 0; part < r().op.parts(); ++part)
        std::fill_n(s.d_sums + part * r().units, s.units, T(0));
    }
}

// Gate after gate: the weights of one, for as many units as stay in registers, fit into the first
// cache between the rows.
template <class T>
void GradientCall<T>::Share::AddProducts(int64_t step) const {
  const int64_t first = own().first(), last = own().last();
  const int64_t row_stride = r().panels() * kPanel;
  for (int64_t gate = 0; gate < r().op.gates(); ++gate) {
    MultiplyRows(RowProducts<T>{.rows = static_cast<size_t>(r().rows),
                                .depth = static_cast<size_t>(r().units),
                                .groups = static_cast<size_t>(last_panel - first_panel),
                                .x = DSums(step) + gate * r().units,
                                .x_stride = static_cast<size_t>(r().sums()),
                                .w = WeightsOf(gate, first_panel),
                                .bias = at.zeros + first,
                                .y = at.products + first,
                                .y_stride = static_cast<size_t>(row_stride)});
    // Of a row that does not have the step they are zeros.
    for (int64_t row = 0; row < r().rows; ++row) {
      const T* products = at.products + row * row_stride;
      T* dh = at.dh + row * r().units;
      for (int64_t unit = first; unit < last; ++unit) dh[unit] += products[unit];
    }
  }
}

template <class T>
void GradientCall<T>::Share::Run(TeamBarrier& team) const {
  for (int64_t panel = first_panel; panel < last_panel; ++panel) Pack(panel);
  own().Copy(In(Op::kLastHidden), at.dh);
  own().Copy(In(Op::kLastCell), at.dc);
  if (r().op.is_lstm()) Cells();
  for (int64_t i = r().steps - 1; i >= 0; --i) {
    GradeSums(i, Step(i));
    team.Wait();  // for all sums of the step
    AddProducts(Step(i));
  }
  auto* first = reinterpret_cast<T*>(a.more[0]);
  own().Copy(at.dh, first);
  if (r().op.is_lstm()) own().Copy(at.dc, first + r().states());
}

absl::StatusOr<MadeAnchor> MakeStepsGradient(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  GradientSteps r{.op = *node.op.As<Op>(),
                  .steps = site.out.shape[0],
                  .rows = site.out.shape[1],
                  .units = site.more[0].shape[2]};
  FORGE_ASSIGN_OR_RETURN(r.operands, LayerOperands::Of(site, Op::kLengths));
  if (site.out.dtype == DType::kF64)
    return MadeAnchor{std::make_unique<GradientCall<double>>(r, site.settings.threads),
                      node.first_out};
  return MadeAnchor{std::make_unique<GradientCall<float>>(r, site.settings.threads),
                    node.first_out};
}

}  // namespace

const Kernel& StepsGradientKernel() {
  static const FloatKernel<Op> kKernel(&MakeStepsGradient);
  return kKernel;
}

}  // namespace forge::cpu
