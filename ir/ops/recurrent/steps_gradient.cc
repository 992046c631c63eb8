// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/recurrent/steps_gradient.h"

#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/recurrent/recurrent_steps.h"
#include "ir/ops/recurrent/step_parts.h"

namespace forge::ir {
namespace {

using Operand = StepsGradient::Operand;

// The states whose gradients go from step to step: dc is of an LSTM.
struct Carried {
  Value dh, dc;
};

// The steps one after another, on the operands in the type of accumulation.
class UnrolledGradient {
 public:
  UnrolledGradient(const StepsGradient& op, Function& f, ValueSpan in) : op_(op), f_(f) {
    for (size_t i = 0; i < in.size(); ++i)
      in_.push_back(in[i] && i != Operand::kLengths ? Widened(in[i]) : in[i]);
    shape_ = in[Operand::kSums].type().shape();
    h_ = in[Operand::kWeight].type().shape()[0];
  }
  Values Run();

 private:
  Value Of(Operand o) const { return o < in_.size() ? in_[o] : Value{}; }
  Value Zeros(const Dims& shape) const {
    return f_(Fill{0, in_[Operand::kSums].type().dtype(), shape}, {});
  }
  Value OrZeros(Value v) const { return v ? v : Zeros({shape_[1], h_}); }
  Value Joined(const Values& v, int64_t axis) const {
    return v.size() == 1 ? v[0] : f_.Add(Concat{.axis = axis}, v)[0];
  }
  Value Sum(int64_t step, int64_t part) const {
    return StepPart(AtStep(in_[Operand::kSums], step), part, h_);
  }
  // The cells before each step, in the order in which steps run.
  Values CellsBefore();
  // Gradients of the parts of the sums of a step, and what reaches the state before it.
  Values Lstm(int64_t step, Value before, Carried& d) const;
  Values Gru(int64_t step, Carried& d) const;
  Values Rnn(int64_t step, Carried& d) const;
  // True where a row has the step; absent: all have.
  Value Runs(int64_t step) const {
    return lengths_ ? lengths_ > static_cast<double>(step) : Value{};
  }

  const StepsGradient& op_;
  Function& f_;
  Values in_;
  Dims shape_;  // of the sums
  Dim h_;
  Value lengths_;  // [n, 1]
};

Values UnrolledGradient::CellsBefore() {
  const int64_t steps = shape_[0].constant();
  Values all;
  Value cell = OrZeros(Of(Operand::kFirstCell));
  for (int64_t i = 0; i < steps; ++i) {
    all.push_back(cell);
    const int64_t t = op_.reverse ? steps - 1 - i : i;
    const Value next = sigmoid(Sum(t, 1)) * cell + sigmoid(Sum(t, 0)) * tanh(Sum(t, 2));
    const Value runs = Runs(t);
    cell = runs ? select(runs, next, cell) : next;
  }
  return all;
}

Values UnrolledGradient::Lstm(int64_t step, Value before, Carried& d) const {
  const Value input = sigmoid(Sum(step, 0)), forget = sigmoid(Sum(step, 1));
  const Value candidate = tanh(Sum(step, 2)), output = sigmoid(Sum(step, 3));
  const Value cell = tanh(forget * before + input * candidate);
  const Value dc = d.dc + d.dh * output * (1 - cell * cell);
  const Value of_output = d.dh * cell * output * (1 - output);
  d = {.dh = Zeros({shape_[1], h_}), .dc = dc * forget};
  return {dc * candidate * input * (1 - input), dc * before * forget * (1 - forget),
          dc * input * (1 - candidate * candidate), of_output};
}

Values UnrolledGradient::Gru(int64_t step, Carried& d) const {
  const Value reset = sigmoid(Sum(step, 0)), update = sigmoid(Sum(step, 1));
  const Value product = Sum(step, 2), fresh = tanh(Sum(step, 3) + reset * product);
  const Value of_fresh = d.dh * (1 - update) * (1 - fresh * fresh);
  const Value before = AtStep(in_[Operand::kHidden], step);
  const Value of_update = d.dh * (before - fresh) * update * (1 - update);
  d.dh = d.dh * update;
  return {of_fresh * product * reset * (1 - reset), of_update, of_fresh * reset, of_fresh};
}

Values UnrolledGradient::Rnn(int64_t step, Carried& d) const {
  const Value sum = Sum(step, 0), dh = d.dh;
  d.dh = Zeros({shape_[1], h_});
  if (op_.cell == StepCell::kRelu) return {select(sum > 0.0, dh, 0.0)};
  const Value y = tanh(sum);
  return {dh * (1 - y * y)};
}

Values UnrolledGradient::Run() {
  const Value weight = in_[Operand::kWeight];
  const DType type = weight.type().dtype();
  const Dims state_shape = {shape_[1], h_};
  if (!CanWriteOut(f_, shape_[0])) return {};
  if (const Value lengths = Of(Operand::kLengths))
    lengths_ = f_(Reshape{{shape_[1], 1}}, {lengths});
  const int64_t steps = shape_[0].constant();
  const Values cells = op_.is_lstm() ? CellsBefore() : Values();
  Values all(static_cast<size_t>(steps));
  Carried d{OrZeros(Of(Operand::kLastHidden)), OrZeros(Of(Operand::kLastCell))};
  for (int64_t i = steps - 1; i >= 0; --i) {
    const int64_t t = op_.reverse ? steps - 1 - i : i;
    const Carried after = d;
    if (const Value dy = Of(Operand::kDy)) d.dh = d.dh + AtStep(dy, t);
    Values parts = op_.is_lstm()                ? Lstm(t, cells[static_cast<size_t>(i)], d)
                   : op_.cell == StepCell::kGru ? Gru(t, d)
                                                : Rnn(t, d);
    const Values columns(parts.begin(), parts.begin() + op_.gates());
    d.dh = d.dh + f_(MatMul{.transpose_b = true}, {Joined(columns, 1), weight});
    if (const Value runs = Runs(t)) {
      d.dh = select(runs, d.dh, after.dh);
      if (op_.is_lstm()) d.dc = select(runs, d.dc, after.dc);
      for (Value& v : parts) v = select(runs, v, 0.0);
    }
    all[static_cast<size_t>(t)] = f_(Reshape{{1, shape_[1], shape_[2]}}, {Joined(parts, 1)});
  }
  Values first = {f_(Reshape{{1, shape_[1], h_}}, {d.dh})};
  if (op_.is_lstm()) first.push_back(f_(Reshape{{1, shape_[1], h_}}, {d.dc}));
  return {Narrowed(steps == 0 ? Zeros(shape_) : Joined(all, 0), type),
          Narrowed(Joined(first, 0), type)};
}

// ---- the operands of the gradient ---------------------------------------------------------------

// What the gradient of steps reads of them, in the type of accumulation.
class StepsForward {
 public:
  StepsForward(const GradArgs& g, StepCell cell, bool reverse)
      : g_(g), cell_(cell), reverse_(reverse), shape_(g.in[kGateSums].type().shape()) {
    h_ = Given(kStepWeight).type().shape()[0];
    before_ = HiddenBefore();
  }
  const Value& before() const { return before_; }
  bool has(size_t i) const { return i < g_.in.size() && g_.in[i]; }
  Value Given(size_t i) const { return has(i) ? Widened(g_.in[i]) : Value{}; }
  Value Flowing(size_t k) const {
    return k < g_.dout.size() && g_.dout[k] ? Widened(g_.dout[k]) : Value{};
  }
  // [s n, c] of [s, n, c].
  Value InRows(Value v) const {
    return g_.fn(Reshape{{shape_[0] * shape_[1], v.type().shape()[2]}}, {v});
  }
  // Columns `first` to `last` of parts of h columns each.
  Value Parts(Value v, int64_t first, int64_t last) const {
    return g_.fn(Slice{.begin = {h_ * first}, .end = {h_ * last}, .axes = {2}}, {v});
  }
  Value Sums() const;

 private:
  Value HiddenBefore() const;

  const GradArgs& g_;
  StepCell cell_;
  bool reverse_;
  Dims shape_;  // of the gates
  Dim h_;
  Value before_;
};

// The hidden state before each step [s, n, h]: what the step before gave, or the first.
Value StepsForward::HiddenBefore() const {
  Function& f = g_.fn;
  Pad moved{.before = {1, 0, 0}, .after = {-1, 0, 0}};
  if (reverse_) std::swap(moved.before, moved.after);
  // Zeros stand where no step was before: at an end, and in y beyond the length of a row.
  const Value before = f(moved, {Widened(g_.out[0])});
  if (!has(kFirstHidden)) return before;
  // Steps are counted in the order in which they run, or where lengths say which is the first of a
  // row, in that of memory.
  const bool by_length = reverse_ && has(kStepLengths);
  Iota count{.dtype = DType::kI32, .count = shape_[0]};
  if (reverse_ && !by_length) count.begin = shape_[0] - 1, count.step = -1;
  const Value step = f(Reshape{{shape_[0], 1, 1}}, {f(count, {})});
  Value first = f(Fill{0, DType::kI32, {1, 1, 1}}, {});
  if (by_length) {
    const Value lengths = convert(g_.in[kStepLengths], DType::kI32);
    first = f(Reshape{{1, shape_[1], 1}}, {min(lengths, DimValue(shape_[0], lengths))}) - 1.0;
  }
  return select(f(Equal{}, {step, first}), Given(kFirstHidden), before);
}

Value StepsForward::Sums() const {
  Function& f = g_.fn;
  const Value gates = Given(kGateSums);
  Value product = f(Reshape{shape_}, {f(MatMul{}, {InRows(before_), Given(kStepWeight)})});
  if (has(kStepBias)) product = product + Given(kStepBias);
  if (cell_ != StepCell::kGru) return gates + product;
  return f(Concat{.axis = 2},
           {Parts(gates, 0, 2) + Parts(product, 0, 2), Parts(product, 2, 3), Parts(gates, 2, 3)});
}

}  // namespace

Values GradientOfSteps(const GradArgs& g, StepCell cell, bool reverse) {
  const StepsForward steps(g, cell, reverse);
  Function& f = g.fn;
  const bool gru = cell == StepCell::kGru, lstm = cell == StepCell::kLstm;
  const Value operands[] = {steps.Sums(),
                            steps.Given(kStepWeight),
                            gru ? steps.before() : Value{},
                            lstm ? steps.Given(kFirstCell) : Value{},
                            steps.has(kStepLengths) ? g.in[kStepLengths] : Value{},
                            steps.Flowing(0),
                            steps.Flowing(1),
                            lstm ? steps.Flowing(2) : Value{}};
  const Values made = f.Add(StepsGradient{.cell = cell, .reverse = reverse}, operands);
  Values d(g.in.size());
  if (!f.status().ok()) return d;
  const Value all = made[0], of_product = gru ? steps.Parts(all, 0, 3) : all;
  d[kGateSums] = gru ? f(Concat{.axis = 2}, {steps.Parts(all, 0, 2), steps.Parts(all, 3, 4)}) : all;
  d[kStepWeight] =
      f(MatMul{.transpose_a = true}, {steps.InRows(steps.before()), steps.InRows(of_product)});
  if (steps.has(kStepBias)) d[kStepBias] = SumTo(of_product, g.in[kStepBias].type().shape());
  for (int64_t state = 0; state < (lstm ? 2 : 1); ++state)
    if (const auto at = static_cast<size_t>(kFirstHidden + state); steps.has(at))
      d[at] = AtStep(made[1], state);
  for (size_t i = 0; i < d.size(); ++i)
    if (d[i]) d[i] = Narrowed(d[i], g.in[i].type().dtype());
  return d;
}

absl::StatusOr<Types> StepsGradient::infer(TypeSpan in) const {
  const Dims &sums = in[kSums].shape(), &weight = in[kWeight].shape();
  if (!Unify(weight[0] * gates(), weight[1]).ok())
    return InvalidArgument("weight has {} columns, not {} for each of its {} rows",
                           weight[1].ToText(), gates(), weight[0].ToText());
  if (!Unify(weight[0] * parts(), sums[2]).ok())
    return InvalidArgument("sums has {} columns, not {} for each of the {} rows of weight",
                           sums[2].ToText(), parts(), weight[0].ToText());
  const auto given = [&](Operand o) { return o < in.size() && in[o]; };
  if (given(kHidden) != (cell == StepCell::kGru))
    return InvalidArgument("hidden is an operand of gru, which needs it");
  if (!is_lstm() && (given(kFirstCell) || given(kLastCell)))
    return InvalidArgument("first_cell and d_last_cell are operands of lstm");
  const DType t = in[kSums].dtype();
  return Types{Type::Tensor(t, sums), Type::Tensor(t, {is_lstm() ? 2 : 1, sums[1], weight[0]})};
}

Values StepsGradient::decompose(Function& f, ValueSpan in) const {
  const DType type = in[kSums].type().dtype();
  Values d = UnrolledGradient(*this, f, in).Run();
  if (d.empty()) return Values(2, in[kSums]);
  for (Value& v : d) v = Narrowed(v, type);
  return d;
}

Cost StepsGradient::cost(TypeSpan in) const {
  const Dims &sums = in[kSums].shape(), &weight = in[kWeight].shape();
  return {.flops = sums[0] * sums[1] * weight[1] * (2 * weight[0] + 20), .terms = weight[1]};
}

Cases StepsGradient::cases() {
  using enum StepCell;
  return {
      {StepsGradient{}, {"float[3,2,20]", "float[5,20]", "", "", "", "float[3,2,5]"}},
      {StepsGradient{.reverse = true},
       {"float[4,3,12]", "float[3,12]", "", "float[3,3]", "i32[3] in 0..5", "float[4,3,3]",
        "float[3,3]", "float[3,3]"}},
      {StepsGradient{}, {"f32[2,1,4]", "f32[1,4]", "", "", "i64[1] in 1..1", "", "f32[1,1]"}},
      {StepsGradient{},
       {"f32[5,2,140]", "f32[35,140] in -1..1", "", "f32[2,35]", "", "f32[5,2,35]"}},
      {StepsGradient{.reverse = true}, {"f32[1,9,8] in -30..30", "f32[2,8]"}},
      {StepsGradient{}, {"f32[0,2,8]", "f32[2,8]", "", "", "", "", "f32[2,2]"}},
      {StepsGradient{}, {"f32[2,0,8]", "f32[2,8]"}},
      {.op = StepsGradient{},
       .in = {"f32[100,8,1024]", "f32[256,1024] in -0.1..0.1", "", "", "", "f32[100,8,256]"},
       .bench = true},
      {StepsGradient{.cell = kGru},
       {"float[3,2,20]", "float[5,15]", "float[3,2,5]", "", "", "float[3,2,5]"}},
      {StepsGradient{.cell = kGru, .reverse = true},
       {"f32[4,3,140]", "f32[35,105] in -1..1", "f32[4,3,35]", "", "i64[3] in 0..5", "f32[4,3,35]",
        "f32[3,35]"}},
      {.op = StepsGradient{.cell = kGru},
       .in = {"f32[100,8,1024]", "f32[256,768] in -0.1..0.1", "f32[100,8,256]", "", "",
              "f32[100,8,256]"},
       .bench = true},
      {StepsGradient{.cell = kTanh}, {"float[3,2,5]", "float[5,5]", "", "", "", "float[3,2,5]"}},
      {StepsGradient{.cell = kRelu, .reverse = true},
       {"float[4,3,3]", "float[3,3]", "", "", "i32[3] in 0..5", "float[4,3,3]", "float[3,3]"}},
      {StepsGradient{.cell = kTanh},
       {"f32[3,2,70]", "f32[70,70] in -1..1", "", "", "", "f32[3,2,70]"}},
      {StepsGradient{}, {"f32[3,2,20]", "f32[4,20]"}, "20 columns, not 4 for each of its 4 rows"},
      {StepsGradient{.cell = kGru},
       {"f32[3,2,6]", "f32[2,6]", "f32[3,2,2]"},
       "sums has 6 columns, not 4 for each of the 2 rows"},
      {StepsGradient{.cell = kGru}, {"f32[3,2,8]", "f32[2,6]"}, "hidden is an operand of gru"},
      {StepsGradient{.cell = kTanh},
       {"f32[3,2,2]", "f32[2,2]", "", "f32[2,2]"},
       "first_cell and d_last_cell are operands of lstm"}};
}

FORGE_DEFINE_OP(StepsGradient)

}  // namespace forge::ir
