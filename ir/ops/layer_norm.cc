// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/layer_norm.h"

#include <cmath>

#include "ir/module.h"
#include "ir/ops/axes.h"
#include "ir/ops/define.h"
#include "ir/ops/elements.h"
#include "ir/ops/reduce.h"
#include "ir/scalar_math.h"

namespace forge::ir {
namespace {

// Rows of `length` elements, and the affine operands repeated to one row.
struct NormRows {
  int64_t count = 1, length = 1;
  std::vector<double> x, gamma, beta;
};

std::vector<double> OneRow(const HostValue* v, std::span<const int64_t> row, double fallback) {
  int64_t length = 1;
  for (int64_t extent : row) length *= extent;
  std::vector<double> out(static_cast<size_t>(length), fallback);
  if (v == nullptr) return out;
  const std::vector<double> from = Doubles(*v);
  const Index strides = BroadcastStrides(v->shape(), row);
  size_t next = 0;
  for (Box at(row); at; at.Next()) {
    int64_t place = 0;
    for (size_t a = 0; a < row.size(); ++a) place += (*at)[a] * strides[a];
    out[next++] = from[static_cast<size_t>(place)];
  }
  return out;
}

absl::StatusOr<NormRows> RowsOf(const Eval& e, int64_t axis) {
  const HostValue& x = *e.in(0);
  FORGE_ASSIGN_OR_RETURN(const int64_t first, NormalAxis(axis, x.rank()));
  NormRows r{.x = Doubles(x)};
  for (int a = 0; a < x.rank(); ++a) (a < first ? r.count : r.length) *= x.dim(a);
  const std::span<const int64_t> shape(x.shape());
  const auto row = shape.subspan(static_cast<size_t>(first));
  r.gamma = OneRow(e.inputs() > 1 ? e.in(1) : nullptr, row, 1);
  r.beta = OneRow(e.inputs() > 2 ? e.in(2) : nullptr, row, 0);
  return r;
}

// Mean and deviation of each row go to `f`, with the row.
template <class F>
absl::Status ForRows(Eval& e, const LayerNorm& op, F f) {
  FORGE_ASSIGN_OR_RETURN(NormRows r, RowsOf(e, op.axis));
  for (int64_t i = 0; i < r.count && r.length > 0; ++i) {
    const std::span<double> row(r.x.data() + i * r.length, static_cast<size_t>(r.length));
    double mean = 0, variance = 0;
    for (double v : row)
      if (op.subtract_mean) mean += v / static_cast<double>(r.length);
    for (double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(r.length);
    for (size_t k = 0; k < row.size(); ++k)
      row[k] = f(row[k], mean, std::sqrt(variance + op.epsilon), r.gamma[k], r.beta[k]);
  }
  Store(r.x, e.out(0));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Types> LayerNorm::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const int64_t first, NormalAxis(axis, in[0].rank()));
  const Dims& x = in[0].shape();
  const Dims row(x.begin() + first, x.end());
  for (const Type& t : in.subspan(1)) {
    if (!t) continue;
    const std::array shapes = {&row, &t.shape()};
    const auto all = BroadcastShapes(shapes);
    if (!all.ok() || all->size() != row.size())
      return InvalidArgument("{} does not broadcast to {}", t.ToText(), ToText(row));
    for (size_t a = 0; a < row.size(); ++a)
      if (row[a] == Dim(1) && !((*all)[a] == Dim(1)))
        return InvalidArgument("{} does not broadcast to {}", t.ToText(), ToText(row));
  }
  return Types{Type::Tensor(in[0].dtype(), x)};
}

Values LayerNorm::decompose(Function&, ValueSpan in) const {
  const Type type = in[0].type();
  const auto first = NormalAxis(axis, type.rank());
  if (!first.ok()) return {Value{}};
  std::vector<int64_t> axes;
  for (int64_t a = *first; a < type.rank(); ++a) axes.push_back(a);
  const Value x = Widened(in[0]);
  const Value centred = subtract_mean ? x - ReduceAxes(ReduceKind::kMean, x, axes) : x;
  const Value variance = ReduceAxes(ReduceKind::kMean, centred * centred, axes);
  Value y = centred / sqrt(variance + epsilon);
  if (in.size() > 1 && in[1]) y = y * Widened(in[1]);
  if (in.size() > 2 && in[2]) y = y + Widened(in[2]);
  return {Narrowed(y, type.dtype())};
}

absl::Status LayerNorm::evaluate(Eval& e) const {
  return ForRows(e, *this, [](double x, double mean, double deviation, double gamma, double beta) {
    return (x - mean) / deviation * gamma + beta;
  });
}

// An error of one unit in a mean of |x| shifts a whole row.
absl::Status LayerNorm::magnitude(Eval& e) const {
  FORGE_ASSIGN_OR_RETURN(NormRows r, RowsOf(e, axis));
  std::vector<double> high(static_cast<size_t>(r.count));
  for (size_t i = 0; i < r.x.size(); ++i) {
    double& h = high[i / static_cast<size_t>(r.length)];
    h = std::fmax(h, std::fabs(r.x[i]));
  }
  size_t next = 0;
  return ForRows(e, *this, [&](double x, double mean, double deviation, double gamma, double beta) {
    const double h = high[next++ / static_cast<size_t>(r.length)];
    const double normal = std::fabs(x - mean) / deviation;
    return (h / deviation * (1 + normal) + normal) * std::fabs(gamma) + std::fabs(beta);
  });
}

Cost LayerNorm::cost(TypeSpan in) const {
  const auto first = NormalAxis(axis, in[0].rank());
  Dim terms = 1;
  if (first.ok()) terms = Product(std::span(in[0].shape()).subspan(static_cast<size_t>(*first)));
  return {.flops = in[0].elements() * 8, .terms = terms + 4};
}

Cases LayerNorm::cases() {
  return {{LayerNorm{}, {"float[2,3,8]", "float[8]", "float[8]"}},
          {LayerNorm{.epsilon = 1e-12}, {"float[5,33]", "float[33]"}},
          {LayerNorm{.axis = 1}, {"f32[3,5,7]", "f32[5,7]", "f32[5,7]"}},
          {LayerNorm{.axis = 0, .epsilon = 0.5}, {"f32[4,3]", "f32[1,3]", "f32[1]"}},
          {LayerNorm{}, {"f32[3,130] in 90..110"}},
          {LayerNorm{}, {"f32[4,1]", "f32[1]", "f32[1]"}},
          {LayerNorm{}, {"f32[0,4]", "f32[4]", "f32[4]"}},
          {LayerNorm{}, {"f32[3,0]", "f32[0]", "f32[0]"}},
          {LayerNorm{}, {"f32[7,1000]", "", "f32[1000]"}},
          {LayerNorm{.epsilon = 1e-6, .subtract_mean = false}, {"float[2,3,128]", "float[128]"}},
          {LayerNorm{.axis = 1, .subtract_mean = false}, {"f32[3,5,7]", "", "f32[7]"}},
          {LayerNorm{.subtract_mean = false}, {"f32[4,33] in 90..110"}},
          {.op = LayerNorm{}, .in = {"f32[1024,384]", "f32[384]", "f32[384]"}, .bench = true},
          {.op = LayerNorm{}, .in = {"f32[16384,1024]", "f32[1024]", "f32[1024]"}, .bench = true},
          {LayerNorm{.axis = 2}, {"f32[2,3]", "f32[3]"}, "axis 2 is outside rank 2"},
          {LayerNorm{}, {"f32[2,3]", "f32[4]"}, "does not broadcast"},
          {LayerNorm{}, {"f32[2,1]", "f32[3]"}, "does not broadcast"},
          {LayerNorm{}, {"f32[2,3]", "f32[2,3]"}, "does not broadcast"}};
}

FORGE_DEFINE_OP(LayerNorm)

}  // namespace forge::ir
