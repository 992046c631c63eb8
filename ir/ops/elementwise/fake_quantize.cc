// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise/fake_quantize.h"

#include "ir/op/define.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/norm/affine.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {
namespace {

// The operands in the type that is computed in, the quotient, and its step before and after bounds.
struct Quantised {
  Value scale, zero, quotient, step, bounded;
};

Quantised Quantise(const FakeQuantize& op, Function& f, ValueSpan in) {
  const auto low = static_cast<double>(op.low), high = static_cast<double>(op.high);
  const auto bounded = [&](Value v) { return f(Clamp{.low = low, .high = high}, {v}); };
  Quantised q{.scale = Widened(in[1])};
  if (in[2]) q.zero = bounded(f(Round{}, {Widened(in[2])}));
  // As PyTorch computes it: which step is nearest depends on the last bit.
  q.quotient = Widened(in[0]) * (1 / q.scale);
  q.step = f(Round{}, {q.quotient});
  if (q.zero) q.step = q.step + q.zero;
  q.bounded = bounded(q.step);
  return q;
}

Value WithoutZero(const Quantised& q, Value step) { return q.zero ? step - q.zero : step; }

Value ThroughRounding(const FakeQuantize& op, const Quantised& q, Value inside, Value dy) {
  switch (op.straight_through) {
    case StraightThrough::kClipped:
      return select(inside, dy, 0.0);
    case StraightThrough::kIdentity:
      return dy;
    case StraightThrough::kTanh: {
      const Value t = tanh(q.quotient);
      return dy * (1 - t * t);
    }
    case StraightThrough::kHardTanh:
      return dy * max(1 - abs(q.quotient) / static_cast<double>(op.high), 0.0);
  }
  return dy;
}

}  // namespace

Values FakeQuantize::decompose(Function& f, ValueSpan in) const {
  if (low >= high) f.Fail(InvalidArgument("low = {} is not below high = {}", low, high));
  for (const Value v : {in[1], in[2]})
    if (v) CheckBroadcasts(v, in[0].type().shape());
  const Quantised q = Quantise(*this, f, in);
  return {Narrowed(WithoutZero(q, q.bounded) * q.scale, in[0].type().dtype())};
}

Values FakeQuantize::gradient(const GradArgs& g) const {
  const DType type = g.in[0].type().dtype();
  Values in(g.in.begin(), g.in.end());
  in.resize(3);
  const Quantised q = Quantise(*this, g.fn, in);
  const Value dy = Widened(g.dout[0]), inside = g.fn(Equal{}, {q.step, q.bounded});
  const Value by_scale = WithoutZero(q, q.bounded) - select(inside, q.quotient, 0.0);
  const auto summed = [&](Value v, Value like) {
    return Narrowed(SumTo(v, like.type().shape()) * scale_gradient, type);
  };
  Values out(g.in.size());
  out[0] = Narrowed(ThroughRounding(*this, q, inside, dy), type);
  out[1] = summed(dy * by_scale, g.in[1]);
  if (q.zero) out[2] = summed(select(inside, 0.0, -(dy * q.scale)), g.in[2]);
  return out;
}

Cases FakeQuantize::cases() {
  using enum StraightThrough;
  return {
      {FakeQuantize{}, {"float[4,8]", "float[1] in 0.03..0.05"}},
      {FakeQuantize{.low = 0, .high = 15},
       {"float[3,5]", "float[] in 0.1..0.2", "float[] in 3..5"}},
      {FakeQuantize{.low = -7, .high = 7, .scale_gradient = 0.25},
       {"float[2,3,4]", "float[3,1] in 0.2..0.5", "float[3,1] in -2..2"}},
      {FakeQuantize{.low = -1, .high = 1, .straight_through = kTanh},
       {"f32[19]", "f32[1] in 0.9..1.5"}},
      {FakeQuantize{.low = -7, .high = 7, .straight_through = kHardTanh},
       {"f32[19]", "f32[1] in 0.2..0.5"}},
      {FakeQuantize{.straight_through = kIdentity}, {"f32[2,7]", "f32[7] in 0.01..0.05"}},
      {FakeQuantize{}, {"f32[0,3]", "f32[3]"}},
      {.op = FakeQuantize{}, .in = {"f32[1024,4096]", "f32[4096] in 0.01..0.05"}, .bench = true},
      {FakeQuantize{}, {"f32[2,1]", "f32[3]"}, "does not broadcast to"},
      {FakeQuantize{.low = 3, .high = 3}, {"f32[2]", "f32[1]"}, "low = 3 is not below high = 3"}};
}

FORGE_DEFINE_OP(FakeQuantize)

}  // namespace forge::ir
