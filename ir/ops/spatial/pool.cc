// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/pool.h"

#include <algorithm>
#include <limits>

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/pooling/max_pool_gradient.h"
#include "ir/ops/pooling/window_taps.h"
#include "ir/ops/spatial/window.h"

namespace forge::ir {
namespace {

// What one window of one channel comes to.
class WindowSum {
 public:
  WindowSum(const Pool& op, const HostValue& x)
      : op_(op),
        window_(InVolume(WindowOver(op, x.shape().size()))),
        kernel_(InVolume<int64_t>(ForEachAxis(op.kernel, x.shape().size() - 2, 1), 1)),
        extent_(VolumeOf(x.shape())) {}

  double At(const double* channel, const PerAxis<int64_t>& o) {
    result_ = op_.kind == PoolKind::kMax ? -std::numeric_limits<double>::infinity() : 0;
    inside_ = counted_ = place_ = 0;
    for (int64_t i = 0; i < PlacesOf(kernel_); ++i) Take(channel, o, PlaceIn(kernel_, i));
    if (op_.kind == PoolKind::kMax) return result_;
    const int64_t count = op_.count_include_pad ? counted_ : inside_;
    return count > 0 ? result_ / static_cast<double>(count) : 0;
  }
  // Of the largest element of the last window.
  int64_t place() const { return place_; }

 private:
  void Take(const double* channel, const PerAxis<int64_t>& o, const PerAxis<int64_t>& tap) {
    int64_t at = 0;
    bool inside = true, counted = true;
    for (size_t a = 0; a < tap.size(); ++a) {
      const int64_t place = window_[a].PlaceOf(o[a], tap[a]);
      counted = counted && place < extent_[a] + window_[a].after;
      inside = inside && place >= 0 && place < extent_[a];
      at = at * extent_[a] + place;
    }
    counted_ += counted;
    if (!inside) return;
    ++inside_;
    const double x = channel[at];
    if (op_.kind == PoolKind::kAverage)
      result_ += x;
    else if (inside_ == 1 || x > result_ || x != x)
      result_ = x, place_ = at;
  }

  const Pool& op_;
  PerAxis<WindowAxis> window_;
  PerAxis<int64_t> kernel_, extent_;
  double result_ = 0;
  int64_t inside_ = 0, counted_ = 0;  // positions in x, and in x and its padding
  int64_t place_ = 0;
};

}  // namespace

absl::StatusOr<Types> Pool::infer(TypeSpan in) const {
  const Dims& x = in[0].shape();
  FORGE_ASSIGN_OR_RETURN(const Window window, WindowOf(*this, x.size() - 2));
  const std::vector<int64_t> size = ForEachAxis(kernel, window.size(), 1);
  if (size.size() != window.size())
    return InvalidArgument("kernel has {} numbers, not {}", size.size(), window.size());
  Dims out{x[0], x[1]};
  for (size_t a = 0; a < window.size(); ++a) {
    if (size[a] < 1 || size[a] > INT32_MAX) return InvalidArgument("kernel of {}", size[a]);
    const int64_t reach = (size[a] - 1) * window[a].dilation + 1;
    for (int64_t p : {window[a].before, window[a].after})
      if (p < 0 || p >= reach)
        return InvalidArgument("padding {} is not within 0..{} of the window", p, reach - 1);
    FORGE_ASSIGN_OR_RETURN(const Dim n, WindowCount(window[a], x[2 + a], size[a], ceil_mode));
    out.push_back(n);
  }
  Types results{Type::Tensor(in[0].dtype(), out)};
  if (finds_places()) results.push_back(Type::Tensor(DType::kI64, std::move(out)));
  return results;
}

Values Pool::decompose(Function& f, ValueSpan in) const {
  const size_t axes = in[0].type().shape().size() - 2;
  const Window window = WindowOver(*this, axes + 2);
  const std::vector<int64_t> size = ForEachAxis(kernel, axes, 1);
  if (finds_places()) {
    const Type x = in[0].type();
    const auto out = infer({&x, 1});
    if (!out.ok()) return f.Fail(out.status()), Values{in[0], in[0]};
    const LargestTaps y = LargestOfTaps(in[0], TapAxes(window, size, (*out)[0].shape()));
    return {y.value, y.index};
  }
  if (std::count_if(size.begin(), size.end(), [](int64_t k) { return k > 1; }) < 2) return {};
  // A window of padding alone is none of one axis.
  for (size_t a = 0; a < axes; ++a)
    if (in[0].type().shape()[2 + a] == Dim(0)) return {};
  Value y = kind == PoolKind::kAverage ? Widened(in[0]) : in[0];
  for (size_t a = axes; a-- > 0;) {
    Pool along{.kind = kind, .ceil_mode = ceil_mode, .count_include_pad = count_include_pad};
    along.kernel.assign(axes, 1);
    along.strides = along.dilations = along.kernel;
    along.padding.assign(2 * axes, 0);
    along.kernel[a] = size[a];
    along.strides[a] = window[a].stride;
    along.dilations[a] = window[a].dilation;
    along.padding[a] = window[a].before;
    along.padding[axes + a] = window[a].after;
    y = f(along, {y});
  }
  const DType t = in[0].type().dtype();
  return {y.type().dtype() == t ? y : convert(y, t)};
}

Values Pool::gradient(const GradArgs& g) const {
  const Value x = g.in[0];
  if (!g.dout[0]) return {Value{}};
  if (kind == PoolKind::kMax) {
    const MaxPoolGradient op{kernel, strides, dilations, padding, ceil_mode};
    return {g.fn(op, {x, g.dout[0]})};
  }
  const size_t rank = x.type().shape().size();
  const Window window = WindowOver(*this, rank);
  const Value dy = Widened(g.dout[0]);
  std::vector<int64_t> padded;
  for (const WindowAxis& w : window) padded.push_back(w.after);
  if (!count_include_pad) padded.clear();
  const std::vector<int64_t> size = ForEachAxis(kernel, rank - 2, 1);
  std::vector<TapAxis> axes = TapAxes(window, size, dy.type().shape());
  const Value count = max(CountOfTaps(x, axes, dy.type().dtype(), padded), 1.0);
  for (TapAxis& a : axes) a = Reversed(a, x.type().shape()[static_cast<size_t>(a.axis)]);
  return {Narrowed(SumOfTaps(dy / count, axes), x.type().dtype())};
}

absl::Status Pool::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  HostValue& y = e.out(0);
  const std::vector<double> image = Doubles(x);
  std::vector<double> results, places;
  results.reserve(static_cast<size_t>(y.elements()));
  const PerAxis<int64_t> from = VolumeOf(x.shape()), to = VolumeOf(y.shape());
  WindowSum window(*this, x);
  for (int64_t channel = 0; channel < x.dim(0) * x.dim(1); ++channel)
    for (int64_t o = 0; o < PlacesOf(to); ++o) {
      results.push_back(window.At(image.data() + channel * PlacesOf(from), PlaceIn(to, o)));
      if (finds_places()) places.push_back(static_cast<double>(window.place()));
    }
  Store(results, y);
  if (finds_places()) Store(places, e.out(1));
  return absl::OkStatus();
}

Cost Pool::cost(TypeSpan in) const {
  const auto out = infer(in);
  Dim window = 1;
  for (int64_t k : kernel) window = window * k;
  return {.flops = out.ok() ? out->front().elements() * window : Dim(0),
          .terms = kind == PoolKind::kMax ? Dim(0) : window};
}

namespace {

// Signals and volumes.
[[gnu::cold]] void AddOtherRanks(PoolKind kind, Cases& cases) {
  cases.push_back({Pool{.kind = kind, .kernel = {3}, .strides = {2}}, {"float[2,3,9]"}});
  cases.push_back({Pool{.kind = kind,
                        .kernel = {4},
                        .strides = {3},
                        .dilations = {2},
                        .padding = {5, 2},
                        .ceil_mode = true,
                        .count_include_pad = true},
                   {"f32[1,5,16]"}});
  cases.push_back({Pool{.kind = kind, .kernel = {40}, .padding = {8, 39}}, {"f32[1,3,40]"}});
  cases.push_back({Pool{.kind = kind}, {"f32[2,0,1]"}});
  cases.push_back(
      {Pool{.kind = kind, .kernel = {2, 3, 2}, .strides = {2, 1, 2}}, {"float[1,3,4,5,8]"}});
  cases.push_back({Pool{.kind = kind,
                        .kernel = {3, 2, 3},
                        .strides = {2, 3, 1},
                        .dilations = {1, 2, 3},
                        .padding = {1, 0, 2, 2, 1, 5},
                        .ceil_mode = true},
                   {"f32[2,2,5,7,6]"}});
  cases.push_back({Pool{.kind = kind,
                        .kernel = {3, 3, 3},
                        .strides = {2, 2, 2},
                        .padding = {1, 1, 1, 1, 1, 1},
                        .count_include_pad = true},
                   {"f32[1,9,1,6,4]"}});
  cases.push_back({.op = Pool{.kind = kind, .kernel = {3}, .strides = {2}, .padding = {1, 1}},
                   .in = {"f32[1,512,3000]"},
                   .bench = true});
  cases.push_back({.op = Pool{.kind = kind, .kernel = {2, 2, 2}, .strides = {2, 2, 2}},
                   .in = {"f32[1,64,16,56,56]"},
                   .bench = true});
}

void AddLargeAndEmpty(PoolKind kind, Cases& cases) {
  cases.push_back({Pool{.kind = kind, .kernel = {300, 301}}, {"f32[1,1,301,302]"}});
  cases.push_back({Pool{.kind = kind, .kernel = {2, 2}}, {"f32[0,3,4,5]"}});
  cases.push_back(
      {Pool{.kind = kind, .kernel = {3, 2}, .padding = {1, 0, 2, 1}}, {"f32[2,3,0,5]"}});
}

}  // namespace

Cases Pool::cases() {
  constexpr PoolKind kMax = PoolKind::kMax, kAverage = PoolKind::kAverage;
  Cases cases;
  for (PoolKind kind : {kMax, kAverage}) {
    cases.push_back({Pool{.kind = kind, .kernel = {2, 2}, .strides = {2, 2}}, {"float[1,3,8,8]"}});
    cases.push_back(
        {Pool{.kind = kind, .kernel = {3, 2}, .strides = {2, 1}, .padding = {1, 0, 2, 1}},
         {"float[2,3,7,9]"}});
    cases.push_back({Pool{.kind = kind,
                          .kernel = {3, 3},
                          .strides = {2, 2},
                          .padding = {1, 1, 1, 1},
                          .ceil_mode = true,
                          .count_include_pad = true},
                     {"f32[1,2,8,10]"}});
    cases.push_back({Pool{.kind = kind,
                          .kernel = {3, 3},
                          .strides = {3, 3},
                          .padding = {1, 1, 1, 1},
                          .ceil_mode = true},
                     {"f32[1,2,6,7]"}});
    cases.push_back(
        {Pool{.kind = kind, .kernel = {2, 3}, .dilations = {3, 2}, .padding = {1, 2, 1, 2}},
         {"f32[1,5,9,11]"}});
    cases.push_back({Pool{.kind = kind,
                          .kernel = {3, 2},
                          .strides = {2, 3},
                          .dilations = {1, 2},
                          .padding = {1, 1, 2, 0},
                          .ceil_mode = true,
                          .count_include_pad = true},
                     {"f64[1,2,8,9]"}});
    cases.push_back({Pool{.kind = kind,
                          .kernel = {2, 3},
                          .strides = {3, 2},
                          .padding = {1, 1, 1, 1},
                          .ceil_mode = true},
                     {"f64[1,2,8,9]"}});
    cases.push_back({Pool{.kind = kind, .kernel = {7, 7}}, {"f32[3,17,7,7]"}});
    cases.push_back({Pool{.kind = kind, .kernel = {2, 2}, .strides = {3, 3}}, {"f32[1,1,5,5]"}});
    cases.push_back({Pool{.kind = kind}, {"f32[2,3,4,5]"}});
    AddOtherRanks(kind, cases);
    AddLargeAndEmpty(kind, cases);
    cases.push_back(
        {.op = Pool{.kind = kind, .kernel = {3, 3}, .strides = {2, 2}, .padding = {1, 1, 1, 1}},
         .in = {"f32[1,64,112,112]"},
         .bench = true});
  }
  cases.push_back({Pool{.kernel = {3, 3}}, {"f32[1,1,7,37] edges"}});
  cases.push_back({Pool{.kernel = {3, 3}, .padding = {3, 0, 0, 0}}, {"f32[1,1,8,8]"}, "padding 3"});
  cases.push_back(
      {Pool{.kernel = {3, 3}, .padding = {0, -1, 0, 0}}, {"f32[1,1,8,8]"}, "padding -1"});
  cases.push_back({Pool{.kernel = {9, 3}}, {"f32[1,1,8,8]"}, "does not fit"});
  cases.push_back({Pool{.kernel = {3}}, {"f32[1,1,8,8]"}, "kernel has 1 numbers"});
  cases.push_back({Pool{}, {"f32[1,1]"}, "0 spatial axes"});
  cases.push_back({Pool{}, {"f32[1,1,2,2,2,2]"}, "4 spatial axes"});
  cases.push_back({Pool{.kernel = {2, 2}, .padding = {1, 1}}, {"f32[1,1,8,8]"}, "padding has 2"});
  cases.push_back({Pool{.kernel = {0, 1}}, {"f32[1,1,8,8]"}, "kernel of 0"});
  return cases;
}

FORGE_DEFINE_OP(Pool)

}  // namespace forge::ir
