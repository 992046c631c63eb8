// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/pool2d.h"

#include <limits>

#include "ir/ops/define.h"
#include "ir/ops/elements.h"
#include "ir/ops/window.h"

namespace forge::ir {
namespace {

Window WindowOf(const Pool2d& op) { return {op.strides, op.dilations, op.padding}; }

// What one window of one plane comes to.
class WindowSum {
 public:
  WindowSum(const Pool2d& op, const double* plane, int64_t rows, int64_t columns)
      : op_(op), plane_(plane), rows_(rows), columns_(columns) {}

  double At(int64_t p, int64_t q) {
    result_ = op_.kind == PoolKind::kMax ? -std::numeric_limits<double>::infinity() : 0;
    inside_ = counted_ = 0;
    for (int64_t rs = 0; rs < op_.kernel[0] * op_.kernel[1]; ++rs)
      Take(PlaceOf(WindowOf(op_), 0, p, rs / op_.kernel[1]),
           PlaceOf(WindowOf(op_), 1, q, rs % op_.kernel[1]));
    if (op_.kind == PoolKind::kMax) return result_;
    const int64_t count = op_.count_include_pad ? counted_ : inside_;
    return count > 0 ? result_ / static_cast<double>(count) : 0;
  }

 private:
  void Take(int64_t row, int64_t column) {
    counted_ += row < rows_ + op_.padding[2] && column < columns_ + op_.padding[3];
    if (row < 0 || row >= rows_ || column < 0 || column >= columns_) return;
    ++inside_;
    const double x = plane_[row * columns_ + column];
    if (op_.kind == PoolKind::kAverage)
      result_ += x;
    else if (!(result_ >= x) && result_ == result_)
      result_ = x;
  }

  const Pool2d& op_;
  const double* plane_;
  int64_t rows_, columns_;
  double result_ = 0;
  int64_t inside_ = 0, counted_ = 0;  // positions in x, and in x and its padding
};

}  // namespace

absl::StatusOr<Types> Pool2d::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(CheckWindow(WindowOf(*this)));
  if (kernel.size() != 2) return InvalidArgument("kernel has {} numbers, not 2", kernel.size());
  Dims out{in[0].shape()[0], in[0].shape()[1]};
  for (int axis = 0; axis < 2; ++axis) {
    const size_t a = static_cast<size_t>(axis);
    if (kernel[a] < 1 || kernel[a] > INT32_MAX) return InvalidArgument("kernel of {}", kernel[a]);
    const int64_t reach = (kernel[a] - 1) * dilations[a] + 1;
    for (int64_t p : {padding[a], padding[a + 2]})
      if (p < 0 || p >= reach)
        return InvalidArgument("padding {} is not within 0..{} of the window", p, reach - 1);
    FORGE_ASSIGN_OR_RETURN(const Dim n, WindowCount(WindowOf(*this), axis, in[0].shape()[2 + a],
                                                    kernel[a], ceil_mode));
    out.push_back(n);
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(out))};
}

absl::Status Pool2d::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  HostValue& y = e.out(0);
  const std::vector<double> image = Doubles(x);
  std::vector<double> results;
  results.reserve(static_cast<size_t>(y.elements()));
  const int64_t in_plane = x.dim(2) * x.dim(3), out_plane = y.dim(2) * y.dim(3);
  for (int64_t plane = 0; plane < x.dim(0) * x.dim(1); ++plane) {
    WindowSum window(*this, image.data() + plane * in_plane, x.dim(2), x.dim(3));
    for (int64_t o = 0; o < out_plane; ++o)
      results.push_back(window.At(o / y.dim(3), o % y.dim(3)));
  }
  Store(results, y);
  return absl::OkStatus();
}

Cost Pool2d::cost(TypeSpan in) const {
  const auto out = infer(in);
  const Dim window = Dim(kernel[0]) * kernel[1];
  return {.flops = out.ok() ? out->front().elements() * window : Dim(0),
          .terms = kind == PoolKind::kMax ? Dim(0) : window};
}

Cases Pool2d::cases() {
  constexpr PoolKind kMax = PoolKind::kMax, kAverage = PoolKind::kAverage;
  Cases cases;
  for (PoolKind kind : {kMax, kAverage}) {
    cases.push_back(
        {Pool2d{.kind = kind, .kernel = {2, 2}, .strides = {2, 2}}, {"float[1,3,8,8]"}});
    cases.push_back(
        {Pool2d{.kind = kind, .kernel = {3, 2}, .strides = {2, 1}, .padding = {1, 0, 2, 1}},
         {"float[2,3,7,9]"}});
    cases.push_back({Pool2d{.kind = kind,
                            .kernel = {3, 3},
                            .strides = {2, 2},
                            .padding = {1, 1, 1, 1},
                            .ceil_mode = true,
                            .count_include_pad = true},
                     {"f32[1,2,8,10]"}});
    cases.push_back({Pool2d{.kind = kind,
                            .kernel = {3, 3},
                            .strides = {3, 3},
                            .padding = {1, 1, 1, 1},
                            .ceil_mode = true},
                     {"f32[1,2,6,7]"}});
    cases.push_back(
        {Pool2d{.kind = kind, .kernel = {2, 3}, .dilations = {3, 2}, .padding = {1, 2, 1, 2}},
         {"f32[1,5,9,11]"}});
    cases.push_back({Pool2d{.kind = kind, .kernel = {7, 7}}, {"f32[3,17,7,7]"}});
    cases.push_back({Pool2d{.kind = kind, .kernel = {2, 2}, .strides = {3, 3}}, {"f32[1,1,5,5]"}});
    cases.push_back({Pool2d{.kind = kind}, {"f32[2,3,4,5]"}});
    cases.push_back({Pool2d{.kind = kind, .kernel = {300, 301}}, {"f32[1,1,301,302]"}});
    cases.push_back({Pool2d{.kind = kind, .kernel = {2, 2}}, {"f32[0,3,4,5]"}});
    cases.push_back(
        {.op = Pool2d{.kind = kind, .kernel = {3, 3}, .strides = {2, 2}, .padding = {1, 1, 1, 1}},
         .in = {"f32[1,64,112,112]"},
         .bench = true});
  }
  cases.push_back({Pool2d{.kernel = {3, 3}}, {"f32[1,1,7,37] edges"}});
  cases.push_back(
      {Pool2d{.kernel = {3, 3}, .padding = {3, 0, 0, 0}}, {"f32[1,1,8,8]"}, "padding 3"});
  cases.push_back(
      {Pool2d{.kernel = {3, 3}, .padding = {0, -1, 0, 0}}, {"f32[1,1,8,8]"}, "padding -1"});
  cases.push_back({Pool2d{.kernel = {9, 3}}, {"f32[1,1,8,8]"}, "does not fit"});
  cases.push_back({Pool2d{.kernel = {3}}, {"f32[1,1,8,8]"}, "kernel has 1 numbers"});
  cases.push_back({Pool2d{.kernel = {0, 1}}, {"f32[1,1,8,8]"}, "kernel of 0"});
  return cases;
}

FORGE_DEFINE_OP(Pool2d)

}  // namespace forge::ir
