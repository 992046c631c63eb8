// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/loss/ctc_loss.h"

#include <limits>

#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/pad.h"

namespace forge::ir {
namespace {

// The logarithm of 0: finite, so that its gradients are; a sum of as many as a f32 counts is, too.
constexpr double kNever = -1e30;

// log(e^a + e^b + e^c)
Value LogOfSum(Value a, Value b, Value c) {
  const Value top = max(max(a, b), c);
  return log(exp(a - top) + exp(b - top) + exp(c - top)) + top;
}

// The states of an alignment: a blank before, between and after the labels of the target.
class Alignment {
 public:
  Alignment(Function& f, const CtcLoss& op, ValueSpan in)
      : f_(f), index_(in[1].type().dtype()), x_(Widened(in[0])), real_(x_.type().dtype()) {
    const Dims& target = in[1].type().shape();
    batch_ = target[0];
    states_ = target[1] * 2 + 1;
    blank_ = f_(Fill{.value = op.blank, .dtype = index_}, {});
    const Value column = f_(Reshape{{batch_, target[1], 1}}, {in[1]});
    const Value blanks = f_(BroadcastTo{{batch_, target[1], 1}}, {blank_});
    const Value pairs = f_(Concat{.axis = 2}, {blanks, column});
    const Value labels = f_(Reshape{{batch_, target[1] * 2}}, {pairs});
    labels_ = f_(Concat{.axis = 1}, {labels, f_(BroadcastTo{{batch_, 1}}, {blank_})});
    // A label may follow another without a blank between them, but not itself.
    const Value before = Shifted(labels_, 2, op.blank);
    const Value differs = f_(NotEqual{}, {labels_, before});
    skips_ = f_(And{}, {f_(NotEqual{}, {labels_, blank_}), differs});
    emitted_ = Emitted();
  }

  // The logarithms [n, states] of the first step, of which two states are open.
  Value Start() const {
    const Value order = f_(Iota{.dtype = index_, .count = states_}, {});
    return select(order < 2.0, EmittedAt(0), kNever);
  }
  Value Step(Value alpha, int64_t step) const {
    const Value skipped = select(skips_, Shifted(alpha, 2, kNever), kNever);
    return LogOfSum(alpha, Shifted(alpha, 1, kNever), skipped) + EmittedAt(step);
  }
  // The element of each row at `place` [n], `kNever` where that is outside.
  Value At(Value alpha, Value place) const {
    const Value order = f_(Iota{.dtype = place.type().dtype(), .count = states_}, {});
    const Value hit = f_(Equal{}, {f_(Reshape{{batch_, 1}}, {place}), order});
    const Value chosen = select(hit, alpha, kNever);
    return f_(Reduce{.kind = ReduceKind::kMax, .axes = {1}, .keep_dims = false}, {chosen});
  }
  const Dim& batch() const { return batch_; }

 private:
  // Column i of the result is column i - by.
  Value Shifted(Value v, int64_t by, double fill) const {
    return f_(Pad{.before = {0, by}, .after = {0, -by}, .value = fill}, {v});
  }
  // x [s, n, c] at the label of each state: [s, n, states].
  Value Emitted() const {
    if (!f_.status().ok()) return x_;
    const Dims& shape = x_.type().shape();
    const Value classes = f_(Iota{.dtype = index_, .count = shape[2]}, {});
    const Value hit = f_(Equal{}, {f_(Reshape{{batch_, states_, 1}}, {labels_}), classes});
    const Value rows = f_(Reshape{{shape[0], batch_, 1, shape[2]}}, {x_});
    const Value all = f_(BroadcastTo{{shape[0], batch_, states_, shape[2]}}, {rows});
    const Value chosen = select(hit, all, 0.0);
    const Reduce sum{.kind = ReduceKind::kSum, .axes = {3}, .keep_dims = false};
    return max(f_(sum, {chosen}), kNever);
  }
  Value EmittedAt(int64_t step) const {
    const Slice row{.begin = {step}, .end = {step + 1}, .axes = {0}};
    return f_(Reshape{{batch_, states_}}, {f_(row, {emitted_})});
  }

  Function& f_;
  const DType index_;
  const Value x_;
  const DType real_;
  Dim batch_, states_;
  Value blank_, labels_, skips_, emitted_;
};

}  // namespace

absl::StatusOr<Types> CtcLoss::infer(TypeSpan in) const {
  const Dim& classes = in[0].shape()[2];
  if (blank < 0 || blank >= classes.max())
    return InvalidArgument("ctc_loss: blank {} is none of {} classes", blank, classes.ToText());
  if (in[0].shape()[0].max() < 1) return InvalidArgument("ctc_loss: x has no steps");
  const Dims shape = reduction == LossReduction::kNone ? Dims{in[0].shape()[1]} : Dims{};
  return Types{Type::Tensor(in[0].dtype(), shape)};
}

Values CtcLoss::decompose(Function& f, ValueSpan in) const {
  const Dim& steps = in[0].type().shape()[0];
  if (!CanWriteOut(f, steps)) return {in[0]};
  const Alignment alignment(f, *this, in);
  const Value length = f(Reshape{{alignment.batch(), 1}}, {in[2]});
  Value alpha = alignment.Start();
  for (int64_t step = 1; step < steps.constant() && f.status().ok(); ++step)
    alpha = select(length > static_cast<double>(step), alignment.Step(alpha, step), alpha);
  const Value last = in[3] * 2.0;
  const Value a = alignment.At(alpha, last), b = alignment.At(alpha, last - 1.0), top = max(a, b);
  const Value of_a = exp(a - top), sum = log(of_a + exp(b - top)) + top;
  if (!f.status().ok()) return {in[0]};
  const double never = zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  Value losses = select(sum < kNever / 2, never, -sum);
  if (reduction == LossReduction::kMean)
    losses = losses / max(convert(in[3], losses.type().dtype()), 1.0);
  return {Reduced(reduction, losses, in[0].type().dtype())};
}

Cases CtcLoss::cases() {
  using R = LossReduction;
  const auto in = [](const std::string& x, const std::string& target, const std::string& lengths,
                     const std::string& target_lengths) {
    return std::vector<std::string>{x + " in -4..-0.5", target, lengths, target_lengths};
  };
  return {
      {CtcLoss{}, in("float[6,2,4]", "i64[2,2] in 1..3", "i64[2] in 5..6", "i64[2] in 1..2")},
      {CtcLoss{R::kNone, 2},
       in("float[5,3,3]", "i32[3,3] in 0..1", "i32[3] in 4..5", "i32[3] in 0..2")},
      {CtcLoss{R::kSum, 0, true},
       in("float[3,3,3]", "i64[3,3] in 1..1", "i64[3] in 1..3", "i64[3] in 2..3")},
      {CtcLoss{R::kNone}, in("f32[3,2,3]", "i64[2,3] in 1..1", "i64[2] in 2..2", "i64[2] in 3..3")},
      {CtcLoss{R::kNone}, in("f32[1,1,2]", "i64[1,1] in 1..1", "i64[1] in 1..1", "i64[1] in 1..1")},
      {CtcLoss{R::kNone}, {"f32[2,0,3]", "i64[0,1]", "i64[0]", "i64[0]"}},
      {CtcLoss{.blank = 3}, {"f32[2,1,3]", "i64[1,1]", "i64[1]", "i64[1]"}, "blank 3 is none of 3"},
      {CtcLoss{}, {"f32[0,1,3]", "i64[1,1]", "i64[1]", "i64[1]"}, "x has no steps"},
      {CtcLoss{}, {"f32[2,2,3]", "i64[1,1]", "i64[2]", "i64[2]"}, "target"}};
}

}  // namespace forge::ir
