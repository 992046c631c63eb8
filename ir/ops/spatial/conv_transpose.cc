// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/conv_transpose.h"

#include <algorithm>
#include <numeric>

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/conv_gradient.h"
#include "ir/ops/spatial/window.h"

namespace forge::ir {
namespace {

// What follows of an op and the types of its operands.
struct Transposed {
  Transposed(const ConvTranspose& o, const Dims& from, const Dims& weight)
      : op(o),
        window(WindowOver(o, from.size())),
        more(ForEachAxis(o.output_padding, window.size(), 0)),
        x(from),
        w(weight),
        m(weight[1] * o.groups),
        per_group(FloorDiv(weight[0], o.groups)) {}
  size_t axes() const { return window.size(); }
  bool steps() const {
    return std::any_of(window.begin(), window.end(), [](const auto& a) { return a.stride > 1; });
  }

  const ConvTranspose& op;
  Window window;
  std::vector<int64_t> more;  // output_padding
  Dims x, w;
  Dim m, per_group;  // channels of the result; inputs of a group
};

// What a window reaches, less its first element.
Dim ReachOf(const WindowAxis& w, const Dim& kernel) { return (kernel - 1) * w.dilation; }

// Elements of a window a stride apart are one phase of it, and fall on a stride's elements of the
// result in turn. Phases side by side along an axis that have equally many elements:
struct Phases {
  int64_t first, count, taps;
};
using PhaseAxes = std::vector<std::vector<Phases>>;

// nullopt where a phase has no elements, or their number is not known.
std::optional<PhaseAxes> PhasesOf(const Transposed& t) {
  PhaseAxes out;
  for (size_t a = 0; a < t.axes(); ++a) {
    if (t.window[a].dilation != 1 || !t.w[2 + a].is_constant()) return std::nullopt;
    const int64_t stride = t.window[a].stride, kernel = t.w[2 + a].constant();
    const int64_t taps = kernel / stride, longer = kernel % stride;
    if (taps == 0) return std::nullopt;
    std::vector<Phases>& along = out.emplace_back();
    if (longer > 0) along.push_back({0, longer, taps + 1});
    along.push_back({longer, stride - longer, taps});
  }
  return out;
}

// Axes from `first` on.
std::vector<int64_t> AxesFrom(size_t first, size_t count) {
  std::vector<int64_t> out(count);
  std::iota(out.begin(), out.end(), static_cast<int64_t>(first));
  return out;
}

// Turns the windows of filters back to front.
Value Mirrored(Function& f, Value filters, size_t axes) {
  const Slice back{.begin = Dims(axes, -1),
                   .end = Dims(axes, INT64_MIN),
                   .axes = AxesFrom(2, axes),
                   .steps = std::vector<int64_t>(axes, -1)};
  return f(back, {filters});
}

// The result as convolutions of x, one for all phases of equally many elements, whose channels are
// then put side by side.
class PhaseConvolutions {
 public:
  PhaseConvolutions(const Transposed& t, Function& f, ValueSpan in, PhaseAxes phases);
  Value Result();

 private:
  Value Stacked(std::vector<Phases>& of);
  Value Convolved(std::span<const Phases> of);
  Value Filters(std::span<const Phases> of);

  const Transposed& t_;
  Function& f_;
  ValueSpan in_;
  PhaseAxes phases_;
  Value split_;                // [groups, inputs, m, (taps, phases)...]
  std::vector<int64_t> grow_;  // how many more elements than x a phase has
  Pad crop_;
};

PhaseConvolutions::PhaseConvolutions(const Transposed& t, Function& f, ValueSpan in,
                                     PhaseAxes phases)
    : t_(t), f_(f), in_(in), phases_(std::move(phases)) {
  Pad fill{.before = Dims(t.w.size(), 0), .after = Dims(t.w.size(), 0)};
  crop_ = fill;
  Dims apart{t.op.groups, t.per_group, t.w[1]};
  for (size_t a = 0; a < t.axes(); ++a) {
    const WindowAxis& w = t.window[a];
    const int64_t taps = phases_[a][0].taps, filled = taps * w.stride - t.w[2 + a].constant();
    const int64_t beyond = t.more[a] - w.after - filled;  // of the last phase
    const int64_t more = std::max<int64_t>((beyond + w.stride - 1) / w.stride, 0);
    grow_.push_back(taps - 1 + more);
    crop_.before[2 + a] = -w.before;
    crop_.after[2 + a] = beyond - more * w.stride;
    fill.after[2 + a] = filled;
    apart.insert(apart.end(), {taps, w.stride});
  }
  const bool whole = fill.after == fill.before;
  split_ = f(Reshape{std::move(apart)}, {whole ? in[1] : f(fill, {in[1]})});
}

// What the windows were filled up with is in no filter: 0 times infinity would be NaN.
Value PhaseConvolutions::Filters(std::span<const Phases> of) {
  Slice part;
  Dims filters{t_.m, t_.per_group};
  Transpose turn{{0, 2}};
  bool whole = true, single = true;
  for (size_t a = 0; a < of.size(); ++a) {
    const Phases& p = of[a];
    part.begin.insert(part.begin.end(), {0, p.first});
    part.end.insert(part.end.end(), {p.taps, p.first + p.count});
    filters[0] = filters[0] * p.count;
    filters.emplace_back(p.taps);
    turn.permutation.push_back(static_cast<int64_t>(4 + 2 * a));
    whole = whole && phases_[a].size() == 1;
    single = single && p.taps == 1;
  }
  turn.permutation.push_back(1);
  for (size_t a = 0; a < of.size(); ++a)
    turn.permutation.push_back(static_cast<int64_t>(3 + 2 * a));
  part.axes = AxesFrom(3, part.begin.size());
  const Value turned = f_(turn, {whole ? split_ : f_(part, {split_})});
  const Value made = f_(Reshape{std::move(filters)}, {turned});
  return single ? made : Mirrored(f_, made, of.size());
}

// [n, m, phases..., places...]
Value PhaseConvolutions::Convolved(std::span<const Phases> of) {
  int64_t count = 1;
  Conv conv{.groups = t_.op.groups};
  Dims apart{t_.x[0], t_.m}, places;
  for (size_t a = 0; a < of.size(); ++a) {
    count *= of[a].count;
    apart.emplace_back(of[a].count);
    places.push_back(t_.x[2 + a] + grow_[a]);
    conv.padding.push_back(of[a].taps - 1);
  }
  conv.padding.insert(conv.padding.end(), grow_.begin(), grow_.end());
  apart.insert(apart.end(), places.begin(), places.end());
  Value bias;
  if (in_.size() > 2 && in_[2]) {
    const Value column = f_(Reshape{{t_.m, 1}}, {in_[2]});
    const Value repeated = f_(BroadcastTo{{t_.m, count}}, {column});
    bias = f_(Reshape{{t_.m * count}}, {repeated});
  }
  const Value filters = Filters(of);
  return f_(Reshape{std::move(apart)}, {f_(conv, {in_[0], filters, bias})});
}

Value PhaseConvolutions::Stacked(std::vector<Phases>& of) {
  if (of.size() == t_.axes()) return Convolved(of);
  Values parts;
  for (const Phases& p : phases_[of.size()]) {
    of.push_back(p);
    parts.push_back(Stacked(of));
    of.pop_back();
  }
  if (parts.size() == 1) return parts[0];
  return f_(Concat{.axis = static_cast<int64_t>(2 + of.size())}, {parts[0], parts[1]});
}

Value PhaseConvolutions::Result() {
  std::vector<Phases> none;
  const Value apart = Stacked(none);
  Transpose together{{0, 1}};
  Dims shape{t_.x[0], t_.m};
  const auto axes = static_cast<int64_t>(t_.axes());
  for (int64_t a = 0; a < axes; ++a) {
    together.permutation.insert(together.permutation.end(), {2 + axes + a, 2 + a});
    const auto i = static_cast<size_t>(a);
    shape.push_back((t_.x[2 + i] + grow_[i]) * t_.window[i].stride);
  }
  const Value y = f_(Reshape{std::move(shape)}, {f_(together, {apart})});
  const Dims none_cropped(t_.x.size(), 0);
  if (crop_.before == none_cropped && crop_.after == none_cropped) return y;
  return f_(crop_, {y});
}

// x with stride - 1 zeros after each element.
Value Stretched(const Transposed& t, Function& f, Value x) {
  if (!t.steps()) return x;
  Dims apart{t.x[0], t.x[1]}, shape = apart, zeros{0, 0};
  for (size_t a = 0; a < t.axes(); ++a) {
    apart.insert(apart.end(), {t.x[2 + a], 1});
    zeros.insert(zeros.end(), {0, t.window[a].stride - 1});
    shape.push_back(t.x[2 + a] * t.window[a].stride);
  }
  const Pad pad{.before = Dims(zeros.size(), 0), .after = zeros};
  return f(Reshape{std::move(shape)}, {f(pad, {f(Reshape{std::move(apart)}, {x})})});
}

// The weights of the convolution that gathers what this op scatters: mirrored, m first.
Value GatherFilters(const Transposed& t, Function& f, Value weight) {
  Dims apart{t.op.groups, t.per_group, t.w[1]}, filters{t.m, t.per_group};
  Transpose turn{{0, 2, 1}};
  for (size_t a = 0; a < t.axes(); ++a) {
    apart.push_back(t.w[2 + a]);
    filters.push_back(t.w[2 + a]);
    turn.permutation.push_back(static_cast<int64_t>(3 + a));
  }
  const Value grouped = f(Reshape{std::move(apart)}, {weight});
  const Value made = f(Reshape{std::move(filters)}, {f(turn, {grouped})});
  return Mirrored(f, made, t.axes());
}

// One element of a window.
template <class T>
struct WindowTap {
  PerAxis<int64_t> at;
  T weight;
};

// Adds weight * x to the elements of y that the tap of each window meets.
class Spread {
 public:
  Spread(const PerAxis<WindowAxis>& w, const PerAxis<int64_t>& from, const PerAxis<int64_t>& to)
      : w_(w), from_(from), to_(to) {}

  template <class T>
  void Add(const WindowTap<T>& tap, const T* x, T* y) const {
    for (int64_t i = 0; i < PlacesOf(from_); ++i) {
      const PerAxis<int64_t> o = PlaceIn(from_, i);
      int64_t at = 0;
      bool inside = true;
      for (size_t a = 0; a < o.size(); ++a) {
        const int64_t place = w_[a].PlaceOf(o[a], tap.at[a]);
        inside = inside && place >= 0 && place < to_[a];
        at = at * to_[a] + place;
      }
      if (inside) y[at] += Product(tap.weight, x[i]);
    }
  }

 private:
  const PerAxis<WindowAxis>& w_;
  const PerAxis<int64_t>&from_, &to_;
};

template <class T>
std::vector<T> SpreadAll(const ConvTranspose& op, const ConvElements<T>& in, Eval& e) {
  const HostValue &x = *e.in(0), &w = *e.in(1), &y = e.out(0);
  const PerAxis<WindowAxis> window = InVolume(WindowOver(op, x.shape().size()));
  const PerAxis<int64_t> from = VolumeOf(x.shape()), kernel = VolumeOf(w.shape()),
                         to = VolumeOf(y.shape());
  const Spread scatter(window, from, to);
  std::vector<T> sums(static_cast<size_t>(y.elements()));
  const int64_t taps = PlacesOf(kernel), places = PlacesOf(to), k = w.dim(1);
  const int64_t per_group = x.dim(1) / op.groups;
  for (int64_t nm = 0; places > 0 && nm < y.dim(0) * y.dim(1); ++nm) {
    const int64_t n = nm / y.dim(1), m = nm % y.dim(1);
    T* out = sums.data() + nm * places;
    if (!in.bias.empty()) std::fill(out, out + places, in.bias[static_cast<size_t>(m)]);
    for (int64_t i = 0; i < per_group * taps; ++i) {
      const int64_t c = m / k * per_group + i / taps;
      const T weight = in.weights[static_cast<size_t>((c * k + m % k) * taps + i % taps)];
      const T* channel = in.image.data() + (n * x.dim(1) + c) * PlacesOf(from);
      scatter.Add(WindowTap<T>{PlaceIn(kernel, i % taps), weight}, channel, out);
    }
  }
  return sums;
}

}  // namespace

absl::StatusOr<Types> ConvTranspose::infer(TypeSpan in) const {
  constexpr int64_t kMost = int64_t{1} << 31;
  const Dims &x = in[0].shape(), &w = in[1].shape();
  FORGE_ASSIGN_OR_RETURN(const Window window, WindowOf(*this, x.size() - 2));
  if (w.size() != x.size()) return InvalidArgument("weights {} for {}", ToText(w), ToText(x));
  const std::vector<int64_t> more = ForEachAxis(output_padding, window.size(), 0);
  if (more.size() != window.size())
    return InvalidArgument("output_padding has {} numbers, not {}", more.size(), window.size());
  if (groups < 1 || (w[0].is_constant() && w[0].constant() % groups != 0))
    return InvalidArgument("groups {} does not divide {} channels", groups, w[0].ToText());
  const Dim m = w[1] * groups;
  if (in.size() > 2 && in[2] && !Unify(in[2].shape()[0], m).ok())
    return InvalidArgument("bias {} for {} channels", in[2].ToText(), m.ToText());
  Dims out{x[0], m};
  for (size_t a = 0; a < window.size(); ++a) {
    if (more[a] < 0 || more[a] > kMost) return InvalidArgument("output_padding of {}", more[a]);
    if (w[2 + a].max() < 1) return InvalidArgument("a kernel of 0");
    out.push_back((x[2 + a] - 1) * window[a].stride + ReachOf(window[a], w[2 + a]) + 1 -
                  window[a].before - window[a].after + more[a]);
    if (out.back().max() < 1) return InvalidArgument("nothing is left of the result");
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(out))};
}

Values ConvTranspose::decompose(Function& f, ValueSpan in) const {
  const Transposed t(*this, in[0].type().shape(), in[1].type().shape());
  if (t.steps())
    if (std::optional<PhaseAxes> phases = PhasesOf(t))
      return {PhaseConvolutions(t, f, in, *std::move(phases)).Result()};
  Conv conv{.dilations = dilations, .padding = {}, .groups = groups};
  conv.padding.resize(2 * t.axes());
  for (size_t a = 0; a < t.axes(); ++a) {
    const WindowAxis& w = t.window[a];
    const Dim reach = ReachOf(w, t.w[2 + a]);
    if (!reach.is_constant()) {
      f.Fail(Unimplemented("conv_transpose with a kernel of {}", t.w[2 + a].ToText()));
      return {Value{}};
    }
    conv.padding[a] = reach.constant() - w.before;
    conv.padding[t.axes() + a] = reach.constant() - w.after + t.more[a] - (w.stride - 1);
  }
  const Value x = Stretched(t, f, in[0]), filters = GatherFilters(t, f, in[1]);
  return {f(conv, {x, filters, in.size() > 2 ? in[2] : Value()})};
}

Values ConvTranspose::gradient(const GradArgs& g) const {
  if (Has(kComplexTypes, g.in[0].type().dtype())) return GradientByParts(*this, g);
  const Value x = g.in[0], weight = g.in[1], dy = g.dout[0];
  const Conv back{strides, dilations, padding, groups};
  Value dx = g.fn(back, {dy, weight});
  if (g.fn.status().ok()) dx = FirstElements(dx, x.type().shape());
  Values d{dx, WeightGradientOf(back, dy, weight.type().shape(), x)};
  if (g.in.size() > 2) d.push_back(g.in[2] ? BiasGradientOf(dy) : Value{});
  return d;
}

absl::Status ConvTranspose::evaluate(Eval& e) const {
  const HostValue &x = *e.in(0), &w = *e.in(1);
  const HostValue* bias = e.inputs() > 2 ? e.in(2) : nullptr;
  if (Has(kComplexTypes, x.dtype())) {
    const ConvElements<std::complex<double>> in{
        Complexes(x), Complexes(w), bias ? Complexes(*bias) : std::vector<std::complex<double>>{}};
    Store(SpreadAll(*this, in, e), e.out(0));
  } else {
    const ConvElements<double> in{Doubles(x), Doubles(w),
                                  bias ? Doubles(*bias) : std::vector<double>{}};
    Store(SpreadAll(*this, in, e), e.out(0));
  }
  return absl::OkStatus();
}

Cost ConvTranspose::cost(TypeSpan in) const {
  const Dims& w = in[1].shape();
  const Dim taps = Product(std::span(w).subspan(2));
  const Dim terms = FloorDiv(w[0], std::max<int64_t>(groups, 1)) * taps;
  return {.flops = in[0].elements() * w[1] * taps * 2, .terms = terms + 1};
}

namespace {

[[gnu::cold]] Cases RefusedTransposed() {
  using Op = ConvTranspose;
  return {{Op{}, {"f32[1,3]", "f32[3,2]"}, "0 spatial axes"},
          {Op{}, {"f32[1,3,4]", "f32[3,2,3,3]"}, "weights [3, 2, 3, 3] for [1, 3, 4]"},
          {Op{.groups = 2}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "groups 2 does not divide 3"},
          {Op{}, {"f32[1,3,4,4]", "f32[3,2,3,3]", "f32[4]"}, "bias"},
          {Op{.output_padding = {-1, 0}}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "output_padding of -1"},
          {Op{.output_padding = {1}}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "1 numbers"},
          {Op{.padding = {4, 0, 4, 0}}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "nothing is left"},
          {Op{.strides = {0, 1}}, {"f32[1,3,4,4]", "f32[3,2,3,3]"}, "strides of 0"}};
}

}  // namespace

Cases ConvTranspose::cases() {
  using Op = ConvTranspose;
  Cases cases = {
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
      {Op{.strides = {3, 2},
          .dilations = {2, 1},
          .padding = {1, 0, 1, 0},
          .output_padding = {2, 1},
          .groups = 2},
       {"f64[2,4,2,3]", "f64[4,3,2,3]", "f64[6]"}},
      {Op{.strides = {2, 1}, .groups = 2}, {"f32[1,4,5,5]", "f32[4,3,3,3]", "f32[6]"}},
      {Op{.strides = {4, 3}, .padding = {2, 0, 1, 2}, .output_padding = {3, 0}, .groups = 2},
       {"f32[2,6,3,4]", "f32[6,2,7,5]", "f32[4]"}},
      {Op{.strides = {2, 1}}, {"f32[1,3,1,1]", "f32[3,4,4,1]"}},
      {Op{.strides = {2, 2}}, {"f32[0,3,4,5]", "f32[3,4,2,2]"}},
      {Op{.strides = {2, 2}, .padding = {1, 1, 1, 1}, .output_padding = {1, 1}},
       {"f32[1,2,9,8] edges", "f32[2,5,3,3] in 0.01..0.1", "f32[5]"}},
      {Op{.strides = {3, 3}}, {"f32[1,2,9,8] edges", "f32[2,5,2,4] in 0.01..0.1"}},
      {Op{}, {"float[2,3,7]", "float[3,2,3]", "float[2]"}},
      {Op{}, {"complex[2,3,7]", "complex[3,2,3]", "complex[2]"}},
      {Op{.strides = {2, 1}, .groups = 2}, {"complex[1,4,3,5]", "complex[4,3,3,2]"}},
      {Op{.strides = {2}, .padding = {3, 3}, .groups = 2},
       {"float[1,6,9]", "float[6,4,8]", "float[8]"}},
      {Op{.strides = {4}, .padding = {2, 1}, .output_padding = {3}}, {"f32[2,3,5]", "f32[3,2,7]"}},
      {Op{.strides = {2}, .dilations = {3}, .padding = {0, 2}}, {"f32[1,3,6]", "f32[3,4,3]"}},
      {Op{.strides = {2}}, {"f32[1,3,1]", "f32[3,4,5]"}},
      {Op{.strides = {2, 2, 2}}, {"float[1,3,2,3,4]", "float[3,2,2,2,2]", "float[2]"}},
      {Op{.strides = {1, 2, 3},
          .padding = {1, 0, 1, 0, 1, 2},
          .output_padding = {0, 1, 2},
          .groups = 2},
       {"f32[2,4,3,2,4]", "f32[4,3,2,3,4]", "f32[6]"}},
      {Op{.dilations = {1, 2, 1}, .padding = {1, 1, 0, 1, 1, 0}},
       {"f32[1,2,4,5,3]", "f32[2,3,3,2,1]"}},
      {.op = Op{.strides = {2, 2}}, .in = {"f32[1,24,160,160]", "f32[24,24,2,2]"}, .bench = true},
      {.op = Op{.strides = {2, 2}, .padding = {1, 1, 1, 1}},
       .in = {"f32[1,64,64,64]", "f32[64,32,4,4]", "f32[32]"},
       .bench = true},
      {.op = Op{.strides = {2}, .padding = {1, 1}},
       .in = {"f32[1,256,1500]", "f32[256,128,4]", "f32[128]"},
       .bench = true},
      {.op = Op{.strides = {2, 2, 2}},
       .in = {"f32[1,64,8,28,28]", "f32[64,32,2,2,2]", "f32[32]"},
       .bench = true}};
  for (Case& c : RefusedTransposed()) cases.push_back(std::move(c));
  return cases;
}

FORGE_DEFINE_OP(ConvTranspose)

}  // namespace forge::ir
