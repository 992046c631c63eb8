// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/conv2d.h"

#include "ir/ops/define.h"
#include "ir/ops/elements.h"
#include "ir/ops/window.h"

namespace forge::ir {
namespace {

Window WindowOf(const Conv2d& op) { return {op.strides, op.dilations, op.padding}; }

// One image plane and what slides over it.
struct Plane {
  const double* data;
  int64_t rows, columns;
};

// A place of the kernel and its weight.
struct Tap {
  int64_t r, s;
  double weight;
};

// Adds weight * (the elements that the tap meets) to a plane of results.
void AddTap(const Window& w, const Tap& tap, const Plane& x, Plane size, double* y) {
  const Span p = InsideOf(w, 0, tap.r, x.rows, size.rows);
  const Span q = InsideOf(w, 1, tap.s, x.columns, size.columns);
  for (int64_t row = p.begin; row < p.end; ++row) {
    const double* from = x.data + PlaceOf(w, 0, row, tap.r) * x.columns;
    const int64_t first = PlaceOf(w, 1, 0, tap.s);
    double* to = y + row * size.columns;
    for (int64_t column = q.begin; column < q.end; ++column)
      to[column] += tap.weight * from[first + column * w.strides[1]];
  }
}

}  // namespace

absl::StatusOr<Types> Conv2d::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(CheckWindow(WindowOf(*this)));
  const Dims &x = in[0].shape(), &w = in[1].shape();
  if (groups < 1) return InvalidArgument("groups of {}", groups);
  if (w[0].is_constant() && w[0].constant() % groups != 0)
    return InvalidArgument("groups {} does not divide {} output channels", groups, w[0].ToText());
  if (!Unify(x[1], w[1] * groups).ok())
    return InvalidArgument("{} channels are not {} groups of {}", x[1].ToText(), groups,
                           w[1].ToText());
  Dims out{x[0], w[0]};
  for (int axis = 0; axis < 2; ++axis) {
    const size_t d = 2 + static_cast<size_t>(axis);
    FORGE_ASSIGN_OR_RETURN(const Dim n, WindowCount(WindowOf(*this), axis, x[d], w[d], false));
    out.push_back(n);
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(out))};
}

absl::Status Conv2d::evaluate(Eval& e) const {
  const HostValue &x = *e.in(0), &w = *e.in(1);
  const HostValue* bias = e.in(2);
  HostValue& y = e.out(0);
  const std::vector<double> image = Doubles(x), weights = Doubles(w);
  const int64_t rows = w.dim(2), columns = w.dim(3), depth = w.dim(1);
  const int64_t per_group = std::max<int64_t>(w.dim(0) / groups, 1);
  const int64_t in_plane = x.dim(2) * x.dim(3), out_plane = y.dim(2) * y.dim(3);
  const Plane size{nullptr, y.dim(2), y.dim(3)};
  std::vector<double> sums(static_cast<size_t>(y.elements()));
  for (int64_t nm = 0; out_plane > 0 && nm < y.dim(0) * y.dim(1); ++nm) {
    const int64_t n = nm / y.dim(1), m = nm % y.dim(1);
    double* to = sums.data() + nm * out_plane;
    if (bias) std::fill(to, to + out_plane, bias->f64(m));
    for (int64_t crs = 0; crs < depth * rows * columns; ++crs) {
      const int64_t c = crs / (rows * columns), r = crs / columns % rows, s = crs % columns;
      const int64_t channel = n * x.dim(1) + m / per_group * depth + c;
      const Plane from{image.data() + channel * in_plane, x.dim(2), x.dim(3)};
      const double weight = weights[static_cast<size_t>(m * depth * rows * columns + crs)];
      AddTap(WindowOf(*this), {r, s, weight}, from, size, to);
    }
  }
  Store(sums, y);
  return absl::OkStatus();
}

Cost Conv2d::cost(TypeSpan in) const {
  const Dims& w = in[1].shape();
  const Dim terms = w[1] * w[2] * w[3];
  const auto out = infer(in);
  return {.flops = out.ok() ? out->front().elements() * terms * 2 : Dim(0), .terms = terms + 1};
}

Cases Conv2d::cases() {
  return {
      {Conv2d{}, {"float[1,3,8,9]", "float[4,3,3,3]", "float[4]"}},
      {Conv2d{}, {"float[2,5,1,1]", "float[3,5,1,1]"}},
      {Conv2d{.strides = {2, 1}, .padding = {1, 0, 2, 1}}, {"float[2,4,7,7]", "float[6,4,3,2]"}},
      {Conv2d{.dilations = {2, 3}, .padding = {2, 3, 2, 3}},
       {"f32[1,2,9,11]", "f32[3,2,3,3]", "f32[3]"}},
      {Conv2d{.strides = {2, 3}, .dilations = {3, 1}, .padding = {0, 1, 4, 0}},
       {"f32[1,7,13,10]", "f32[5,7,2,5]", "f32[5]"}},
      {Conv2d{.padding = {-1, 1, 0, -2}}, {"f32[1,3,8,8]", "f32[2,3,3,3]"}},
      {Conv2d{.groups = 2}, {"float[1,6,5,5]", "float[4,3,3,3]", "float[4]"}},
      {Conv2d{.padding = {1, 1, 1, 1}, .groups = 4},
       {"float[1,4,6,6]", "float[4,1,3,3]", "float[4]"}},
      {Conv2d{.strides = {2, 2}, .padding = {2, 2, 2, 2}, .groups = 33},
       {"f32[2,33,11,9]", "f32[33,1,5,5]", "f32[33]"}},
      {Conv2d{.groups = 3}, {"f32[1,3,6,6]", "f32[6,1,3,3]"}},
      {Conv2d{}, {"f32[1,16,14,14]", "f32[33,16,1,1]", "f32[33]"}},
      {Conv2d{.strides = {2, 2}}, {"f32[3,8,7,9]", "f32[16,8,1,1]"}},
      {Conv2d{.padding = {1, 1, 1, 1}}, {"f32[1,17,15,17]", "f32[19,17,3,3]", "f32[19]"}},
      {Conv2d{.padding = {3, 3, 3, 3}}, {"f32[1,1,28,28]", "f32[8,1,7,7]", "f32[8]"}},
      {Conv2d{.padding = {1, 1, 1, 1}}, {"f32[1,64,12,12]", "f32[64,64,3,3]", "f32[64]"}},
      {Conv2d{.padding = {1, 0, 1, 2}}, {"f32[1,32,29,30]", "f32[36,32,3,3]", "f32[36]"}},
      {Conv2d{}, {"f32[1,1400,8,9]", "f32[1,1400,7,7]"}},
      {Conv2d{}, {"f32[0,3,8,8]", "f32[4,3,3,3]"}},
      {Conv2d{.padding = {1, 1, 1, 1}}, {"f32[1,0,4,4]", "f32[2,0,3,3]", "f32[2]"}},
      {.op = Conv2d{.padding = {1, 1, 1, 1}},
       .in = {"f32[1,64,56,56]", "f32[64,64,3,3]"},
       .bench = true},
      {.op = Conv2d{}, .in = {"f32[1,256,56,56]", "f32[64,256,1,1]", "f32[64]"}, .bench = true},
      {.op = Conv2d{.strides = {2, 2}, .padding = {3, 3, 3, 3}},
       .in = {"f32[1,3,224,224]", "f32[64,3,7,7]", "f32[64]"},
       .bench = true},
      {.op = Conv2d{.padding = {1, 1, 1, 1}, .groups = 144},
       .in = {"f32[1,144,56,56]", "f32[144,1,3,3]", "f32[144]"},
       .bench = true},
      {Conv2d{.groups = 3}, {"f32[1,6,6,6]", "f32[8,2,3,3]"}, "groups 3 does not divide 8"},
      {Conv2d{.groups = 2}, {"f32[1,4,6,6]", "f32[8,4,3,3]"}, "4 channels are not 2 groups"},
      {Conv2d{.groups = 0}, {"f32[1,4,6,6]", "f32[8,4,3,3]"}, "groups of 0"},
      {Conv2d{.strides = {0, 1}}, {"f32[1,4,6,6]", "f32[8,4,3,3]"}, "strides of 0"},
      {Conv2d{.padding = {1, 1}}, {"f32[1,4,6,6]", "f32[8,4,3,3]"}, "padding has 2 numbers"},
      {Conv2d{}, {"f32[1,4,6,6]", "f32[8,4,7,3]"}, "does not fit"},
      {Conv2d{}, {"f32[1,4,6,6]", "f32[8,4,0,3]"}, "kernel of 0"},
      {Conv2d{}, {"f32[1,4,6,6]", "f32[8,4,3,3]", "f32[7]"}, "bias"}};
}

FORGE_DEFINE_OP(Conv2d)

}  // namespace forge::ir
