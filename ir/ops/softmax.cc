// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/softmax.h"

#include <cmath>
#include <limits>

#include "ir/module.h"
#include "ir/ops/axes.h"
#include "ir/ops/define.h"
#include "ir/ops/elements.h"
#include "ir/ops/reduce.h"
#include "ir/scalar_math.h"

namespace forge::ir {
namespace {

// Writes the softmax of one lane to `y`. The maximum of a lane with NaN does not matter.
void Normalize(const Lane& lane, bool masked_zero, std::span<const double> x, std::span<double> y) {
  double high = -std::numeric_limits<double>::infinity(), sum = 0;
  const auto at = [&](int64_t i) { return static_cast<size_t>(lane[i]); };
  for (int64_t i = 0; i < lane.n; ++i) high = std::fmax(high, x[at(i)]);
  if (masked_zero && std::isinf(high) && high < 0) high = 0;
  for (int64_t i = 0; i < lane.n; ++i) sum += std::exp(x[at(i)] - high);
  for (int64_t i = 0; i < lane.n; ++i) y[at(i)] = std::exp(x[at(i)] - high) / sum;
  for (int64_t i = 0; masked_zero && sum == 0 && i < lane.n; ++i) y[at(i)] = 0;
}

// An error of one unit in x - max changes e^(x - max) by |x - max| units, and the sum by their
// weighted mean.
void Magnify(const Lane& lane, std::span<const double> x, std::span<double> y) {
  double high = -std::numeric_limits<double>::infinity(), mean = 0;
  const auto at = [&](int64_t i) { return static_cast<size_t>(lane[i]); };
  for (int64_t i = 0; i < lane.n; ++i) high = std::fmax(high, x[at(i)]);
  for (int64_t i = 0; i < lane.n; ++i)
    if (y[at(i)] > 0) mean += y[at(i)] * (high - x[at(i)]);
  for (int64_t i = 0; i < lane.n; ++i)
    if (y[at(i)] > 0) y[at(i)] *= 1 + (high - x[at(i)]) + mean;
}

absl::Status ForLanes(Eval& e, const Softmax& op, bool magnify) {
  const HostValue& x = *e.in(0);
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(op.axis, x.rank()));
  const std::vector<double> from = Doubles(x);
  std::vector<double> to(from.size());
  for (const Lane& lane : Lanes(x.shape(), static_cast<int>(along))) {
    Normalize(lane, op.masked_rows_zero, from, to);
    if (magnify) Magnify(lane, from, to);
  }
  Store(to, e.out(0));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Types> Softmax::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(NormalAxis(axis, in[0].rank()).status());
  return Types{Type::Tensor(in[0].dtype(), in[0].shape())};
}

Values Softmax::decompose(Function&, ValueSpan in) const {
  const Value x = Widened(in[0]);
  Value top = ReduceAxes(ReduceKind::kMax, x, {axis});
  if (masked_rows_zero) top = max(top, std::numeric_limits<float>::lowest());
  const Value e = exp(x - top);
  Value sum = ReduceAxes(ReduceKind::kSum, e, {axis});
  if (masked_rows_zero) sum = select(sum > 0.0, sum, select(sum < 0.5, 1.0, sum));
  return {Narrowed(e / sum, in[0].type().dtype())};
}

Values Softmax::gradient(const GradArgs& g) const {
  const Value y = g.out[0], dy = g.dout[0];
  return {y * (dy - ReduceAxes(ReduceKind::kSum, y * dy, {axis}))};
}

absl::Status Softmax::evaluate(Eval& e) const { return ForLanes(e, *this, false); }

absl::Status Softmax::magnitude(Eval& e) const { return ForLanes(e, *this, true); }

Cost Softmax::cost(TypeSpan in) const {
  const auto along = NormalAxis(axis, in[0].rank());
  return {.flops = in[0].elements() * 5,
          .terms = along.ok() ? in[0].shape()[static_cast<size_t>(*along)] : Dim(1)};
}

Cases Softmax::cases() {
  return {{Softmax{}, {"float[2,3,4]"}},
          {Softmax{.axis = 1}, {"float[2,33,5] in -30..30"}},
          {Softmax{.axis = 0}, {"float[1,7]"}},
          {Softmax{}, {"f32[3,1000] in -80..80"}},
          {Softmax{}, {"f32[5,2]"}},
          {Softmax{}, {"f32[2,70004] in -80..80"}},
          {Softmax{.axis = 0}, {"f16[20001,3]"}},
          {Softmax{}, {"f32[1]"}},
          {Softmax{.axis = 2}, {"f32[2,3,130,2]"}},
          {Softmax{}, {"float[4,0]"}},
          {Softmax{}, {"float[0,4]"}},
          {Softmax{}, {"f32[37] edges"}},
          {Softmax{.masked_rows_zero = true}, {"float[3,40] edges"}},
          {Softmax{.axis = 0, .masked_rows_zero = true}, {"f32[5,12]"}},
          {.op = Softmax{}, .in = {"f32[4096,4096]"}, .bench = true},
          {.op = Softmax{.axis = 1}, .in = {"f32[8,21,128,128]"}, .bench = true},
          {Softmax{.axis = 3}, {"f32[2,3]"}, "axis 3 is outside rank 2"},
          {Softmax{}, {"i32[2,3]"}, "float"}};
}

FORGE_DEFINE_OP(Softmax)

}  // namespace forge::ir
