// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/conv_transpose2d.h"

#include "ir/module.h"
#include "ir/ops/broadcast_to.h"
#include "ir/ops/conv2d.h"
#include "ir/ops/define.h"
#include "ir/ops/elements.h"
#include "ir/ops/pad.h"
#include "ir/ops/reshape.h"
#include "ir/ops/slice.h"
#include "ir/ops/transpose.h"
#include "ir/ops/window.h"

namespace forge::ir {
namespace {

// What a window of `kernel` elements reaches, less its first.
Dim ReachOf(const ConvTranspose2d& op, size_t axis, const Dim& kernel) {
  return (kernel - 1) * op.dilations[axis];
}

// Elements of a window a stride apart are one phase of it, and fall on a stride's elements of the
// result in turn: how many there are of a phase along each axis, where zeros at the window's end,
// fewer than its elements, make phases alike.
std::optional<Index> PhasesOf(const ConvTranspose2d& op, const Dims& weight) {
  Index taps;
  for (size_t a = 0; a < 2; ++a) {
    if (op.dilations[a] != 1 || !weight[2 + a].is_constant()) return std::nullopt;
    const int64_t kernel = weight[2 + a].constant(), stride = op.strides[a];
    taps.push_back((kernel + stride - 1) / stride);
    if (taps.back() * stride > 2 * kernel) return std::nullopt;
  }
  return taps;
}

// Weights with a channel of their own for each phase, mirrored as a convolution has them.
Value PhaseFilters(const ConvTranspose2d& op, Function& f, Value weight, const Index& taps) {
  const Dims w = weight.type().shape();
  const Dim per_group = FloorDiv(w[0], op.groups);
  const int64_t rows = op.strides[0], columns = op.strides[1];
  Pad zeros{.before = {0, 0, 0, 0},
            .after = {0, 0, taps[0] * rows - w[2], taps[1] * columns - w[3]}};
  const bool whole = zeros.after[2] == Dim(0) && zeros.after[3] == Dim(0);
  const Value all = whole ? weight : f(zeros, {weight});
  const Value apart =
      f(Reshape{{op.groups, per_group, w[1], taps[0], rows, taps[1], columns}}, {all});
  const Value turned = f(Transpose{{0, 2, 4, 6, 1, 3, 5}}, {apart});
  const Value filters =
      f(Reshape{{w[1] * op.groups * rows * columns, per_group, taps[0], taps[1]}}, {turned});
  if (taps[0] == 1 && taps[1] == 1) return filters;
  return f(Slice{{-1, -1}, {INT64_MIN, INT64_MIN}, {2, 3}, {-1, -1}}, {filters});
}

// A convolution gives the phases, as channels, and what is left is to put them side by side.
Value DecomposePhases(const ConvTranspose2d& op, Function& f, ValueSpan in, const Index& taps) {
  const Dims x = in[0].type().shape(), w = in[1].type().shape();
  const int64_t rows = op.strides[0], columns = op.strides[1];
  const Dim m = w[1] * op.groups;
  Value bias;
  if (in.size() > 2 && in[2]) {
    const Value column = f(Reshape{{m, 1}}, {in[2]});
    const Value repeated = f(BroadcastTo{{m, rows * columns}}, {column});
    bias = f(Reshape{{m * rows * columns}}, {repeated});
  }
  Conv2d conv{.groups = op.groups};
  Pad edges{.before = {0, 0}, .after = {0, 0}};
  for (size_t a = 0; a < 2; ++a) {
    const int64_t stride = op.strides[a];
    const int64_t beyond = w[2 + a].constant() - taps[a] * stride - op.padding[2 + a] +
                           op.output_padding[a];  // of the last phase
    const int64_t more = std::max<int64_t>((beyond + stride - 1) / stride, 0);
    conv.padding[a] = taps[a] - 1;
    conv.padding[2 + a] = taps[a] - 1 + more;
    edges.before.emplace_back(-op.padding[a]);
    edges.after.emplace_back(beyond - more * stride);
  }
  const Value phases = f(conv, {in[0], PhaseFilters(op, f, in[1], taps), bias});
  const Dims to = phases.type().shape();
  const Value apart = f(Reshape{{x[0], m, rows, columns, to[2], to[3]}}, {phases});
  const Value together = f(Transpose{{0, 1, 4, 2, 5, 3}}, {apart});
  const Value y = f(Reshape{{x[0], m, to[2] * rows, to[3] * columns}}, {together});
  const auto none = [](const Dim& d) { return d == Dim(0); };
  if (std::all_of(edges.before.begin(), edges.before.end(), none) &&
      std::all_of(edges.after.begin(), edges.after.end(), none))
    return y;
  return f(edges, {y});
}

// x with stride - 1 zeros after each element.
Value Stretched(const ConvTranspose2d& op, Function& f, Value x) {
  if (op.strides[0] == 1 && op.strides[1] == 1) return x;
  const Dims s = x.type().shape();
  const Value apart = f(Reshape{{s[0], s[1], s[2], 1, s[3], 1}}, {x});
  const Value zeros = f(Pad{.before = {0, 0, 0, 0, 0, 0},
                            .after = {0, 0, 0, op.strides[0] - 1, 0, op.strides[1] - 1}},
                        {apart});
  return f(Reshape{{s[0], s[1], s[2] * op.strides[0], s[3] * op.strides[1]}}, {zeros});
}

// The weights of the convolution that gathers what this op scatters: mirrored, m first.
Value Mirrored(const ConvTranspose2d& op, Function& f, Value weight) {
  const Dims w = weight.type().shape();
  const Dim per_group = FloorDiv(w[0], op.groups);
  const Value grouped = f(Reshape{{op.groups, per_group, w[1], w[2], w[3]}}, {weight});
  const Value turned = f(Transpose{{0, 2, 1, 3, 4}}, {grouped});
  const Value filters = f(Reshape{{w[1] * op.groups, per_group, w[2], w[3]}}, {turned});
  return f(Slice{{-1, -1}, {INT64_MIN, INT64_MIN}, {2, 3}, {-1, -1}}, {filters});
}

// One image plane.
struct PlaneSize {
  int64_t rows, columns;
};

// One element of a window.
struct WindowTap {
  Index at;
  double weight;
};

// Adds weight * x to the elements of y that the tap of each window meets.
void ScatterTap(const ConvTranspose2d& op, const WindowTap& tap, std::span<const double> x,
                PlaneSize from, std::span<double> y, PlaneSize to) {
  for (int64_t p = 0; p < from.rows; ++p) {
    const int64_t row = p * op.strides[0] + tap.at[0] * op.dilations[0] - op.padding[0];
    if (row < 0 || row >= to.rows) continue;
    for (int64_t q = 0; q < from.columns; ++q) {
      const int64_t column = q * op.strides[1] + tap.at[1] * op.dilations[1] - op.padding[1];
      if (column < 0 || column >= to.columns) continue;
      y[static_cast<size_t>(row * to.columns + column)] +=
          tap.weight * x[static_cast<size_t>(p * from.columns + q)];
    }
  }
}

}  // namespace

absl::StatusOr<Types> ConvTranspose2d::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(CheckWindow({strides, dilations, padding}));
  constexpr int64_t kMost = int64_t{1} << 31;
  if (output_padding.size() != 2)
    return InvalidArgument("output_padding has {} numbers, not 2", output_padding.size());
  const Dims &x = in[0].shape(), &w = in[1].shape();
  if (groups < 1 || (w[0].is_constant() && w[0].constant() % groups != 0))
    return InvalidArgument("groups {} does not divide {} channels", groups, w[0].ToText());
  const Dim m = w[1] * groups;
  if (in.size() > 2 && in[2] && !Unify(in[2].shape()[0], m).ok())
    return InvalidArgument("bias {} for {} channels", in[2].ToText(), m.ToText());
  Dims out{x[0], m};
  for (size_t a = 0; a < 2; ++a) {
    if (output_padding[a] < 0 || output_padding[a] > kMost)
      return InvalidArgument("output_padding of {}", output_padding[a]);
    if (w[2 + a].max() < 1) return InvalidArgument("a kernel of 0");
    out.push_back((x[2 + a] - 1) * strides[a] + ReachOf(*this, a, w[2 + a]) + 1 - padding[a] -
                  padding[2 + a] + output_padding[a]);
    if (out.back().max() < 1) return InvalidArgument("nothing is left of the result");
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(out))};
}

Values ConvTranspose2d::decompose(Function& f, ValueSpan in) const {
  const Dims w = in[1].type().shape();
  const bool strides_apart = strides[0] > 1 || strides[1] > 1;
  if (const auto taps = PhasesOf(*this, w); taps && strides_apart)
    return {DecomposePhases(*this, f, in, *taps)};
  Conv2d op{.dilations = dilations, .groups = groups};
  for (size_t a = 0; a < 2; ++a) {
    const Dim reach = ReachOf(*this, a, w[2 + a]);
    if (!reach.is_constant()) {
      f.Fail(Unimplemented("conv_transpose2d with a kernel of {}", w[2 + a].ToText()));
      return {Value{}};
    }
    op.padding[a] = reach.constant() - padding[a];
    op.padding[2 + a] = reach.constant() - padding[2 + a] + output_padding[a] - (strides[a] - 1);
  }
  const Value x = Stretched(*this, f, in[0]), filters = Mirrored(*this, f, in[1]);
  return {f(op, {x, filters, in.size() > 2 ? in[2] : Value()})};
}

absl::Status ConvTranspose2d::evaluate(Eval& e) const {
  const HostValue &x = *e.in(0), &w = *e.in(1);
  const HostValue* bias = e.inputs() > 2 ? e.in(2) : nullptr;
  HostValue& y = e.out(0);
  const std::vector<double> image = Doubles(x), weights = Doubles(w);
  std::vector<double> sums(static_cast<size_t>(y.elements()));
  const PlaneSize from{x.dim(2), x.dim(3)}, to{y.dim(2), y.dim(3)};
  const size_t in_plane = static_cast<size_t>(from.rows * from.columns),
               out_plane = static_cast<size_t>(to.rows * to.columns);
  const int64_t per_group = std::max<int64_t>(x.dim(1) / groups, 1), k = w.dim(1);
  for (int64_t nm = 0; out_plane > 0 && nm < y.dim(0) * y.dim(1); ++nm) {
    const int64_t n = nm / y.dim(1), m = nm % y.dim(1);
    const auto out = std::span(sums).subspan(static_cast<size_t>(nm) * out_plane, out_plane);
    if (bias) std::fill(out.begin(), out.end(), bias->f64(m));
    for (int64_t i = 0; i < per_group * w.dim(2) * w.dim(3); ++i) {
      const int64_t taps = w.dim(2) * w.dim(3), tap = i % taps;
      const int64_t c = m / k * per_group + i / taps;
      if (c >= x.dim(1)) break;
      const double weight = weights[static_cast<size_t>((c * k + m % k) * taps + tap)];
      const auto plane =
          std::span(image).subspan(static_cast<size_t>(n * x.dim(1) + c) * in_plane, in_plane);
      ScatterTap(*this, {{tap / w.dim(3), tap % w.dim(3)}, weight}, plane, from, out, to);
    }
  }
  Store(sums, y);
  return absl::OkStatus();
}

Cost ConvTranspose2d::cost(TypeSpan in) const {
  const Dims& w = in[1].shape();
  const Dim terms = FloorDiv(w[0], std::max<int64_t>(groups, 1)) * w[2] * w[3];
  return {.flops = in[0].elements() * w[1] * w[2] * w[3] * 2, .terms = terms + 1};
}

Cases ConvTranspose2d::cases() {
  using Op = ConvTranspose2d;
  return {
      {Op{.strides = {2, 2}}, {"float[1,3,4,5]", "float[3,4,2,2]", "float[4]"}},
      {Op{.strides = {2, 2}}, {"f32[2,24,7,9]", "f32[24,1,2,2]"}},
      {Op{.strides = {3, 2}, .padding = {1, 0, 1, 1}, .output_padding = {0, 1}},
       {"f32[1,5,3,4]", "f32[5,2,3,2]", "f32[2]"}},
      {Op{.strides = {2, 2}, .groups = 3}, {"f32[1,6,3,3]", "f32[6,5,2,2]", "f32[15]"}},
      {Op{}, {"float[1,3,5,4]", "float[3,2,3,3]", "float[2]"}},
      {Op{.strides = {2, 2}, .padding = {1, 1, 1, 1}, .output_padding = {1, 1}},
       {"f32[2,4,5,6]", "f32[4,7,3,3]", "f32[7]"}},
      {Op{.strides = {2, 3}, .dilations = {2, 1}, .padding = {0, 2, 3, 1}},
       {"f32[1,3,5,6]", "f32[3,2,3,4]"}},
      {Op{.strides = {3, 3}}, {"f32[1,2,4,4]", "f32[2,3,2,1]"}},
      {Op{.strides = {2, 1}, .groups = 2}, {"f32[1,4,5,5]", "f32[4,3,3,3]", "f32[6]"}},
      {Op{.strides = {4, 3}, .padding = {2, 0, 1, 2}, .output_padding = {3, 0}, .groups = 2},
       {"f32[2,6,3,4]", "f32[6,2,7,5]", "f32[4]"}},
      {Op{.strides = {2, 1}}, {"f32[1,3,1,1]", "f32[3,4,4,1]"}},
      {Op{.strides = {2, 2}}, {"f32[0,3,4,5]", "f32[3,4,2,2]"}},
      {.op = Op{.strides = {2, 2}}, .in = {"f32[1,24,160,160]", "f32[24,24,2,2]"}, .bench = true},
      {.op = Op{.strides = {2, 2}, .padding = {1, 1, 1, 1}},
       .in = {"f32[1,64,64,64]", "f32[64,32,4,4]", "f32[32]"},
       .bench = true},
      {Op{.groups = 2}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "groups 2 does not divide 3"},
      {Op{}, {"f32[1,3,4,4]", "f32[3,2,3,3]", "f32[4]"}, "bias"},
      {Op{.output_padding = {-1, 0}}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "output_padding of -1"},
      {Op{.output_padding = {1}}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "1 numbers"},
      {Op{.padding = {4, 0, 4, 0}}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "nothing is left"},
      {Op{.strides = {0, 1}}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "strides of 0"}};
}

FORGE_DEFINE_OP(ConvTranspose2d)

}  // namespace forge::ir
