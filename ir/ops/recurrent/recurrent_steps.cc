// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/recurrent/recurrent_steps.h"

#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/recurrent/step_parts.h"
#include "ir/ops/recurrent/steps_gradient.h"

namespace forge::ir {
namespace {

bool Given(ValueSpan in, size_t i) { return i < in.size() && in[i]; }

template <class T>
absl::StatusOr<Types> InferSteps(TypeSpan in) {
  const Dims &gates = in[kGateSums].shape(), &weight = in[kStepWeight].shape();
  if (!Unify(weight[0] * T::kGates, weight[1]).ok())
    return InvalidArgument("weight has {} columns, not {} for each of its {} rows",
                           weight[1].ToText(), T::kGates, weight[0].ToText());
  if (in.size() > kPeepholes && in[kPeepholes] &&
      !Unify(weight[0] * 3, in[kPeepholes].shape()[0]).ok())
    return InvalidArgument("peepholes has {} elements, not 3 for each of the {} rows of weight",
                           in[kPeepholes].shape()[0].ToText(), weight[0].ToText());
  const DType t = in[kGateSums].dtype();
  Types out{Type::Tensor(t, {gates[0], gates[1], weight[0]})};
  out.resize(1 + T::kStates, Type::Tensor(t, {gates[1], weight[0]}));
  return out;
}

template <class T>
Cost CostOfSteps(TypeSpan in) {
  const Dims &gates = in[kGateSums].shape(), &weight = in[kStepWeight].shape();
  return {.flops = gates[0] * gates[1] * weight[1] * (2 * weight[0] + 10), .terms = weight[0]};
}

// The steps one after another, on the operands in the type of accumulation.
class Unrolled {
 public:
  Unrolled(Function& f, ValueSpan in) : f_(f), type_(in[kGateSums].type()) {
    for (size_t i = 0; i < in.size(); ++i)
      in_.push_back(in[i] && i != kStepLengths ? Widened(in[i]) : in[i]);
    h_ = in[kStepWeight].type().shape()[0];
  }
  const Dim& h() const { return h_; }
  bool given(size_t i) const { return Given(in_, i); }
  Value operand(size_t i) const { return in_[i]; }
  Value Recurrent(Value hidden) const { return Product(hidden, in_[kStepWeight], Of(kStepBias)); }
  // state [n, h] times the columns of one gate.
  Value RecurrentOf(int64_t gate, Value state) const {
    Value bias = Of(kStepBias);
    if (bias) bias = f_(Slice{.begin = {h_ * gate}, .end = {h_ * (gate + 1)}}, {bias});
    return Product(state, StepPart(in_[kStepWeight], gate, h_), bias);
  }

  // cell: the new state from the gates of a step [n, g] and the state before.
  using Cell = absl::FunctionRef<Values(Value gates, const Values& state)>;
  Values Run(bool reverse, size_t states, Cell cell) const;

 private:
  Value Of(size_t i) const { return given(i) ? in_[i] : Value{}; }
  Value Product(Value a, Value b, Value bias) const {
    const Value sums = f_(MatMul{}, {a, b});
    return bias ? sums + bias : sums;
  }
  Value Zeros(const Dims& shape) const { return f_(Fill{0, WideOf(type_.dtype()), shape}, {}); }

  Function& f_;
  Type type_;  // of gates
  Values in_;
  Dim h_;
};

Values Unrolled::Run(bool reverse, size_t states, Cell cell) const {
  const Dims& shape = type_.shape();
  const Dims state_shape = {shape[1], h_}, step_shape = {1, shape[1], h_};
  Values state;
  for (size_t i = 0; i < states; ++i)
    state.push_back(given(kFirstHidden + i) ? in_[kFirstHidden + i] : Zeros(state_shape));
  if (!CanWriteOut(f_, shape[0])) return Values(1 + states, state[0]);
  const int64_t steps = shape[0].constant();
  Values y(static_cast<size_t>(steps));
  Value lengths = Of(kStepLengths);
  if (lengths) lengths = f_(Reshape{{shape[1], 1}}, {lengths});
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = reverse ? steps - 1 - i : i;
    Values next = cell(AtStep(in_[kGateSums], t), state);
    Value out = next[0];
    if (lengths) {
      const Value runs = lengths > static_cast<double>(t);
      out = select(runs, out, 0.0);
      for (size_t k = 0; k < states; ++k) next[k] = select(runs, next[k], state[k]);
    }
    y[static_cast<size_t>(t)] = f_(Reshape{step_shape}, {out});
    state = next;
  }
  Values out{steps == 0   ? Zeros({0, shape[1], h_})
             : steps == 1 ? y[0]
                          : f_.Add(Concat{.axis = 0}, y)[0]};
  out.insert(out.end(), state.begin(), state.end());
  for (Value& v : out) v = Narrowed(v, type_.dtype());
  return out;
}

}  // namespace

absl::StatusOr<Types> LstmSteps::infer(TypeSpan in) const { return InferSteps<LstmSteps>(in); }
absl::StatusOr<Types> GruSteps::infer(TypeSpan in) const { return InferSteps<GruSteps>(in); }
absl::StatusOr<Types> RnnSteps::infer(TypeSpan in) const { return InferSteps<RnnSteps>(in); }
Cost LstmSteps::cost(TypeSpan in) const { return CostOfSteps<LstmSteps>(in); }
Cost GruSteps::cost(TypeSpan in) const { return CostOfSteps<GruSteps>(in); }
Cost RnnSteps::cost(TypeSpan in) const { return CostOfSteps<RnnSteps>(in); }

Values LstmSteps::decompose(Function& f, ValueSpan in) const {
  const Unrolled steps(f, in);
  const auto through = [&](Value sum, int64_t part, Value cell) {
    if (!steps.given(kPeepholes)) return sum;
    const Dim &h = steps.h(), first = h * part;
    return sum + cell * f(Slice{.begin = {first}, .end = {first + h}}, {steps.operand(kPeepholes)});
  };
  return steps.Run(reverse, kStates, [&](Value gates, const Values& state) {
    const Value sums = gates + steps.Recurrent(state[0]), cell = state[1];
    const auto gate = [&](int64_t i) { return StepPart(sums, i, steps.h()); };
    const Value input = sigmoid(through(gate(0), 0, cell));
    const Value forget = sigmoid(through(gate(1), 1, cell));
    const Value kept = forget * cell;
    const Value next = kept + input * tanh(gate(2));
    const Value output = sigmoid(through(gate(3), 2, next));
    return Values{output * tanh(next), next};
  });
}

Values GruSteps::decompose(Function& f, ValueSpan in) const {
  const Unrolled steps(f, in);
  return steps.Run(reverse, kStates, [&](Value gates, const Values& state) {
    const Value hidden = state[0];
    const auto given = [&](int64_t i) { return StepPart(gates, i, steps.h()); };
    const Value recurrent = reset_after ? steps.Recurrent(hidden) : Value{};
    const auto product = [&](int64_t i) {
      return reset_after ? StepPart(recurrent, i, steps.h()) : steps.RecurrentOf(i, hidden);
    };
    const auto sum = [&](int64_t i) {
      const Value of_input = given(i);
      return of_input + product(i);
    };
    const Value reset = sigmoid(sum(0)), update = sigmoid(sum(1));
    const Value inner = reset_after ? reset * product(2) : steps.RecurrentOf(2, reset * hidden);
    const Value of_input = given(2), fresh = tanh(of_input + inner);
    const Value kept = update * hidden;
    return Values{(1 - update) * fresh + kept};
  });
}

Values RnnSteps::decompose(Function& f, ValueSpan in) const {
  const Unrolled steps(f, in);
  return steps.Run(reverse, kStates, [&](Value gates, const Values& state) {
    const Value sum = gates + steps.Recurrent(state[0]);
    return Values{activation == RnnActivation::kTanh ? tanh(sum) : max(sum, 0.0)};
  });
}

Values LstmSteps::gradient(const GradArgs& g) const {
  if (Given(g.in, kPeepholes)) return GradientByParts(*this, g);
  return GradientOfSteps(g, StepCell::kLstm, reverse);
}

Values GruSteps::gradient(const GradArgs& g) const {
  if (!reset_after) return GradientByParts(*this, g);
  return GradientOfSteps(g, StepCell::kGru, reverse);
}

Values RnnSteps::gradient(const GradArgs& g) const {
  const bool relu = activation == RnnActivation::kRelu;
  return GradientOfSteps(g, relu ? StepCell::kRelu : StepCell::kTanh, reverse);
}

Cases LstmSteps::cases() {
  return {
      {LstmSteps{}, {"float[3,2,20]", "float[5,20]"}},
      {LstmSteps{.reverse = true},
       {"float[4,3,12]", "float[3,12]", "float[12]", "i32[3] in 0..5", "float[3,3]", "float[3,3]",
        "float[9]"}},
      {LstmSteps{}, {"f32[2,1,4]", "f32[1,4]", "", "i64[1] in 1..1", "f32[1,1]"}},
      {LstmSteps{}, {"f32[5,2,140]", "f32[35,140] in -1..1", "f32[140]", "", "", "f32[2,35]"}},
      {LstmSteps{.reverse = true}, {"f32[1,9,8] in -30..30", "f32[2,8]"}},
      {LstmSteps{}, {"f32[0,2,8]", "f32[2,8]", "", "", "f32[2,2]"}},
      {LstmSteps{}, {"f32[2,0,8]", "f32[2,8]"}},
      {.op = LstmSteps{}, .in = {"f32[100,8,1024]", "f32[256,1024] in -0.1..0.1"}, .bench = true},
      {LstmSteps{}, {"f32[3,2,20]", "f32[4,20]"}, "20 columns, not 4 for each of its 4 rows"},
      {LstmSteps{},
       {"f32[3,2,8]", "f32[2,8]", "", "", "", "", "f32[4]"},
       "peepholes has 4 elements, not 3"},
      {LstmSteps{}, {"f32[3,2,20]", "f32[5,16]"}, "weight"}};
}

Cases GruSteps::cases() {
  return {{GruSteps{}, {"float[1,2,15]", "float[5,15]"}},
          {GruSteps{.reverse = true},
           {"float[4,3,9]", "float[3,9]", "float[9]", "i64[3] in 0..5", "float[3,3]"}},
          {GruSteps{.reset_after = false}, {"float[3,2,12]", "float[4,12]", "float[12]"}},
          {GruSteps{.reverse = true, .reset_after = false},
           {"f32[3,2,99]", "f32[33,99] in -1..1", "", "i32[2] in 1..3", "f32[2,33]"}},
          {GruSteps{.reset_after = false}, {"f32[3,5,24]", "f32[8,24]", "", "i32[5] in 0..4"}},
          {GruSteps{}, {"f32[0,2,6]", "f32[2,6]"}},
          {.op = GruSteps{}, .in = {"f32[100,8,768]", "f32[256,768] in -0.1..0.1"}, .bench = true},
          {GruSteps{}, {"f32[3,2,20]", "f32[5,20]"}, "20 columns, not 3 for each of its 5 rows"},
          {GruSteps{}, {"f32[3,2,6]", "f32[2,6]", "f32[4]"}, "bias"}};
}

Cases RnnSteps::cases() {
  return {{RnnSteps{}, {"float[1,2,5]", "float[5,5]"}},
          {RnnSteps{.activation = RnnActivation::kRelu},
           {"float[4,3,3]", "float[3,3] in -1..1", "float[3]", "i32[3] in 0..5", "float[3,3]"}},
          {RnnSteps{.reverse = true}, {"f32[3,2,70]", "f32[70,70] in -1..1", "f32[70]"}},
          {RnnSteps{}, {"f32[3,0,2]", "f32[2,2]"}},
          {RnnSteps{}, {"f32[3,2,5]", "f32[5,4]"}, "weight"},
          {RnnSteps{}, {"i32[3,2,5]", "i32[5,5]"}, "float"}};
}

FORGE_DEFINE_OP(LstmSteps)
FORGE_DEFINE_OP(GruSteps)
FORGE_DEFINE_OP(RnnSteps)

}  // namespace forge::ir
