// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/batch_norm.h"

#include <cmath>

#include "ir/module.h"
#include "ir/ops/axes.h"
#include "ir/ops/define.h"
#include "ir/ops/elements.h"
#include "ir/ops/reshape.h"
#include "ir/scalar_math.h"

namespace forge::ir {
namespace {

// Calls `f(x, c)` with each element and its place along `axis`, and stores what it gives.
template <class F>
absl::Status ForElements(Eval& e, int64_t axis, F f) {
  const HostValue& x = *e.in(0);
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, x.rank()));
  const size_t step = static_cast<size_t>(Strides(x.shape())[static_cast<size_t>(along)]);
  const size_t extent = static_cast<size_t>(x.dim(static_cast<int>(along)));
  std::vector<double> values = Doubles(x);
  for (size_t i = 0; i < values.size(); ++i) values[i] = f(values[i], i / step % extent);
  Store(values, e.out(0));
  return absl::OkStatus();
}

// The four statistics of every channel.
struct Channels {
  std::vector<double> gamma, beta, mean, variance;
  explicit Channels(Eval& e)
      : gamma(Doubles(*e.in(1))),
        beta(Doubles(*e.in(2))),
        mean(Doubles(*e.in(3))),
        variance(Doubles(*e.in(4))) {}
};

}  // namespace

absl::StatusOr<Types> BatchNorm::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, in[0].rank()));
  const Dim &c = in[0].shape()[static_cast<size_t>(along)], &given = in[1].shape()[0];
  if (!Unify(c, given).ok())
    return InvalidArgument("axis {} has {} channels, gamma {}", axis, c.ToText(), given.ToText());
  return Types{Type::Tensor(in[0].dtype(), in[0].shape())};
}

Values BatchNorm::decompose(Function& f, ValueSpan in) const {
  const Type x = in[0].type();
  const auto along = NormalAxis(axis, x.rank());
  if (!along.ok()) return {Value{}};
  Dims shape(static_cast<size_t>(x.rank() - *along), 1);
  shape[0] = x.shape()[static_cast<size_t>(*along)];
  const Value gamma = Widened(in[1]), beta = Widened(in[2]), mean = Widened(in[3]);
  const Value deviation = sqrt(Widened(in[4]) + epsilon);
  const Value scale = gamma / deviation;
  const Value shift = beta - mean * scale;
  // One at a time: the order of nodes must not depend on the compiler.
  const Value scales = f(Reshape{shape}, {scale});
  const Value shifts = f(Reshape{shape}, {shift});
  const Value y = Widened(in[0]) * scales + shifts;
  return {Narrowed(y, x.dtype())};
}

absl::Status BatchNorm::evaluate(Eval& e) const {
  const Channels s(e);
  return ForElements(e, axis, [&](double x, size_t c) {
    return (x - s.mean[c]) * s.gamma[c] / std::sqrt(s.variance[c] + epsilon) + s.beta[c];
  });
}

absl::Status BatchNorm::magnitude(Eval& e) const {
  const Channels s(e);
  return ForElements(e, axis, [&](double x, size_t c) {
    const double scale = std::fabs(s.gamma[c]) / std::sqrt(s.variance[c] + epsilon);
    return (std::fabs(x) + std::fabs(s.mean[c])) * scale + std::fabs(s.beta[c]);
  });
}

Cost BatchNorm::cost(TypeSpan in) const { return {.flops = in[0].elements() * 2, .terms = 4}; }

Cases BatchNorm::cases() {
  const auto in = [](const std::string& x, const std::string& c) {
    return std::vector<std::string>{x, c, c, c, c + " in 0.1..3"};
  };
  return {{BatchNorm{}, in("float[2,3,4,5]", "float[3]")},
          {BatchNorm{.axis = -1, .epsilon = 1e-3}, in("float[7,33]", "float[33]")},
          {BatchNorm{.axis = 0}, in("f32[5]", "f32[5]")},
          {BatchNorm{}, in("f32[2,17,9]", "f32[17]")},
          {BatchNorm{}, in("f32[0,3,4]", "f32[3]")},
          {.op = BatchNorm{}, .in = in("f32[8,64,56,56]", "f32[64]"), .bench = true},
          {BatchNorm{}, in("f32[2,3,4]", "f32[4]"), "3 channels, gamma 4"},
          {BatchNorm{.axis = 2}, in("f32[2,3]", "f32[3]"), "axis 2 is outside rank 2"},
          {BatchNorm{}, {"f32[2,3]", "f32[3]", "f32[2]", "f32[3]", "f32[3]"}, "beta"}};
}

FORGE_DEFINE_OP(BatchNorm)

}  // namespace forge::ir
