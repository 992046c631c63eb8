// SPDX-License-Identifier: Apache-2.0
// Steps of recurrent networks in floats. Each thread has some units of all rows; threads wait for
// each other after each step.
#include "ir/ops/recurrent/recurrent_steps.h"

#include <algorithm>

#include "cpu_runtime/kernels/recurrent/layer_operands.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

using ir::kFirstCell, ir::kFirstHidden, ir::kGateSums, ir::kPeepholes, ir::kStepBias,
    ir::kStepLengths, ir::kStepWeight;

// The anchor, whatever its cell. A panel of units has all their gates.
struct Recurrence {
  int64_t steps = 0, rows = 0, units = 0, gates = 0;
  bool lstm = false, reverse = false, reset_before = false;
  ir::RnnActivation activation = ir::RnnActivation::kTanh;
  LayerOperands operands = {};

  int64_t panels() const { return (units + kPanel - 1) / kPanel; }
  int64_t columns() const { return gates * kPanel; }  // of a panel
  int64_t states() const { return rows * units; }
};

// The arrays in scratch, each behind the one before.
template <class T>
struct Arrays {
  Arrays(const Recurrence& r, uint8_t* scratch)
      : weights(reinterpret_cast<T*>(scratch)),
        bias(weights + r.panels() * r.units * r.columns()),
        products(bias + r.panels() * r.columns()),
        hidden{products + r.panels() * r.rows * r.columns(),
               products + r.panels() * r.rows * r.columns() + r.states()},
        cell(hidden[1] + r.states()),
        kept(cell + r.states()) {}
  static uint64_t Bytes(const Recurrence& r) {
    return sizeof(T) * static_cast<uint64_t>(r.panels() * r.columns() * (r.units + 1 + r.rows) +
                                             4 * r.states());
  }
  T* weights;    // [panel, gate, unit, unit of the panel], zeros beyond the last unit
  T* bias;       // [panel, gate, unit of the panel], the same
  T* products;   // [panel, row, gate, unit of the panel]
  T* hidden[2];  // [row, unit]: a step reads one and writes the other
  T* cell;       // [row, unit]
  T* kept;       // [row, unit]: r h
};

template <class T>
class StepsCall final : public AnchorCall {
 public:
  StepsCall(const Recurrence& r, int threads) : r_(r), threads_(threads) {
    const CellLoops<T>& loops = CellLoopsOf<T>();
    const bool relu = r.activation == ir::RnnActivation::kRelu;
    cell_ = r.lstm ? loops.lstm : r.gates == 3 ? loops.gru : relu ? loops.rnn_relu : loops.rnn_tanh;
  }
  std::string_view kernel() const override { return "recurrent_steps"; }
  uint64_t scratch_bytes() const override { return Arrays<T>::Bytes(r_); }
  absl::Status Run(const Arguments& a) const override {
    const double step = 2.0 * static_cast<double>(r_.states() * r_.gates * r_.units);
    const int threads = WorthThreads(step) ? threads_ : 1;
    ParallelTeam(threads, [&](int thread, TeamBarrier& team) {
      const int64_t first = r_.panels() * thread / team.size();
      const int64_t last = r_.panels() * (thread + 1) / team.size();
      Share{*this, a, Arrays<T>(r_, a.scratch), first, last}.Run(team);
    });
    return absl::OkStatus();
  }

 private:
  // The panels of one thread.
  struct Share {
    const StepsCall& call;
    const Arguments& a;
    Arrays<T> at;
    int64_t first_panel, last_panel;

    const Recurrence& r() const { return call.r_; }
    const T* In(size_t operand) const { return r().operands.template In<T>(a, operand); }
    int64_t UnitsOf(int64_t panel) const { return std::min(kPanel, r().units - panel * kPanel); }
    T* ProductsOf(int64_t panel) const { return at.products + panel * r().rows * r().columns(); }
    int64_t LengthOf(int64_t row) const { return r().operands.LengthOf(a, row, r().steps); }
    void Pack(int64_t panel) const;
    void Copy(const T* from, T* to) const {
      UnitRange{r().rows, r().units, first_panel, last_panel}.Copy(from, to);
    }
    // Sets the products of gates `first` to `last` to the bias plus x times their weights.
    void Multiply(int64_t panel, const T* x, int64_t first, int64_t last) const;
    CellStep<T> StepOf(int64_t step, int64_t panel, int64_t row, bool odd) const;
    void Cells(int64_t step, int64_t panel, bool odd) const;
    void Step(int64_t step, bool odd, TeamBarrier& team) const;
    void Run(TeamBarrier& team) const;
  };

  Recurrence r_;
  int threads_;
  typename CellLoops<T>::Loop cell_;
};

template <class T>
void StepsCall<T>::Share::Pack(int64_t panel) const {
  const int64_t unit = panel * kPanel, count = UnitsOf(panel);
  const auto pack = [&](const T* from, T* to) {
    if (from != nullptr) to = std::copy_n(from + unit, count, to);
    std::fill_n(to, from == nullptr ? kPanel : kPanel - count, T(0));
  };
  const T *weights = In(kStepWeight), *bias = In(kStepBias);
  for (int64_t gate = 0; gate < r().gates; ++gate) {
    T* to = at.weights + (panel * r().gates + gate) * r().units * kPanel;
    for (int64_t k = 0; k < r().units; ++k)
      pack(weights + (k * r().gates + gate) * r().units, to + k * kPanel);
    pack(bias == nullptr ? nullptr : bias + gate * r().units,
         at.bias + (panel * r().gates + gate) * kPanel);
  }
}

template <class T>
void StepsCall<T>::Share::Multiply(int64_t panel, const T* x, int64_t first, int64_t last) const {
  const int64_t group = panel * r().gates + first;
  MultiplyRows(RowProducts<T>{.rows = static_cast<size_t>(r().rows),
                              .depth = static_cast<size_t>(r().units),
                              .groups = static_cast<size_t>(last - first),
                              .x = x,
                              .x_stride = static_cast<size_t>(r().units),
                              .w = at.weights + group * r().units * kPanel,
                              .bias = at.bias + group * kPanel,
                              .y = ProductsOf(panel) + first * kPanel,
                              .y_stride = static_cast<size_t>(r().columns())});
}

template <class T>
CellStep<T> StepsCall<T>::Share::StepOf(int64_t step, int64_t panel, int64_t row, bool odd) const {
  const int64_t unit = panel * kPanel, state = row * r().units + unit;
  const T* peepholes = In(kPeepholes);
  return {.units = static_cast<size_t>(UnitsOf(panel)),
          .gates = In(kGateSums) + (step * r().rows + row) * r().gates * r().units + unit,
          .gate_stride = static_cast<size_t>(r().units),
          .products = ProductsOf(panel) + row * r().columns(),
          .product_stride = kPanel,
          .peepholes = peepholes != nullptr ? peepholes + unit : nullptr,
          .hidden = at.hidden[odd ? 1 : 0] + state,
          .next = at.hidden[odd ? 0 : 1] + state,
          .cell = at.cell + state,
          .kept = r().reset_before ? at.kept + state : nullptr};
}

template <class T>
void StepsCall<T>::Share::Cells(int64_t step, int64_t panel, bool odd) const {
  for (int64_t row = 0; row < r().rows; ++row) {
    const CellStep<T> s = StepOf(step, panel, row, odd);
    auto* y = reinterpret_cast<T*>(a.out) + (step * r().rows + row) * r().units + panel * kPanel;
    if (step < LengthOf(row)) {
      call.cell_(s);
      std::copy_n(s.next, s.units, y);
    } else {
      std::copy_n(s.hidden, s.units, s.next);
      std::fill_n(y, s.units, T(0));
    }
  }
}

template <class T>
void StepsCall<T>::Share::Step(int64_t step, bool odd, TeamBarrier& team) const {
  const T* hidden = at.hidden[odd ? 1 : 0];
  const int64_t gates = r().reset_before ? r().gates - 1 : r().gates;
  for (int64_t panel = first_panel; panel < last_panel; ++panel) {
    Multiply(panel, hidden, 0, gates);
    for (int64_t row = 0; r().reset_before && row < r().rows; ++row)
      CellLoopsOf<T>().gru_reset(StepOf(step, panel, row, odd));
    if (!r().reset_before) Cells(step, panel, odd);
  }
  if (r().reset_before) {
    team.Wait();  // for all of r h
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      Multiply(panel, at.kept, gates, r().gates);
      Cells(step, panel, odd);
    }
  }
  team.Wait();  // for the whole state
}

template <class T>
void StepsCall<T>::Share::Run(TeamBarrier& team) const {
  for (int64_t panel = first_panel; panel < last_panel; ++panel) Pack(panel);
  Copy(In(kFirstHidden), at.hidden[0]);
  if (r().lstm) Copy(In(kFirstCell), at.cell);
  team.Wait();
  for (int64_t i = 0; i < r().steps; ++i)
    Step(r().reverse ? r().steps - 1 - i : i, i % 2 != 0, team);
  Copy(at.hidden[r().steps % 2], reinterpret_cast<T*>(a.more[0]));
  if (r().lstm) Copy(at.cell, reinterpret_cast<T*>(a.more[1]));
}

std::optional<Recurrence> RecurrenceOf(const ir::AnyOp& op) {
  if (const auto* lstm = op.As<ir::LstmSteps>())
    return Recurrence{.gates = 4, .lstm = true, .reverse = lstm->reverse};
  if (const auto* gru = op.As<ir::GruSteps>())
    return Recurrence{.gates = 3, .reverse = gru->reverse, .reset_before = !gru->reset_after};
  if (const auto* rnn = op.As<ir::RnnSteps>())
    return Recurrence{.gates = 1, .reverse = rnn->reverse, .activation = rnn->activation};
  return std::nullopt;
}

absl::StatusOr<MadeAnchor> MakeRecurrentSteps(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  Recurrence r = *RecurrenceOf(node.op);
  r.steps = site.out.shape[0], r.rows = site.out.shape[1], r.units = site.out.shape[2];
  FORGE_ASSIGN_OR_RETURN(r.operands, LayerOperands::Of(site, kStepLengths));
  if (site.out.dtype == DType::kF64)
    return MadeAnchor{std::make_unique<StepsCall<double>>(r, site.settings.threads),
                      node.first_out};
  return MadeAnchor{std::make_unique<StepsCall<float>>(r, site.settings.threads), node.first_out};
}

class RecurrentSteps final : public Kernel {
 public:
  bool Knows(const Task& task) const override {
    return task.anchor() != nullptr && RecurrenceOf(task.anchor()->op).has_value();
  }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("recurrent_steps");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeRecurrentSteps);
  }
};

}  // namespace

const Kernel& RecurrentStepsKernel() {
  static const RecurrentSteps kKernel;
  return kKernel;
}

}  // namespace forge::cpu
