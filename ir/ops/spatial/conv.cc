// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/conv.h"

#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/spatial/conv_gradient.h"
#include "ir/ops/spatial/window.h"

namespace forge::ir {
namespace {

// What slides over one channel: its places, and their elements.
template <class T>
struct Volume {
  PerAxis<int64_t> extent;
  const T* data;
};

// A place of the kernel and its weight.
template <class T>
struct WeighedPlace {
  PerAxis<int64_t> at;
  T weight;
};

// Adds weight * (the elements that the tap meets) to results of the extents `size`.
template <class T>
void AddTap(const PerAxis<WindowAxis>& w, const WeighedPlace<T>& tap, const Volume<T>& x,
            const PerAxis<int64_t>& size, T* y) {
  PerAxis<Span> inside;
  for (size_t a = 0; a < inside.size(); ++a)
    inside[a] = InsideOf(w[a], tap.at[a], x.extent[a], size[a]);
  for (int64_t o = inside[0].begin; o < inside[0].end; ++o)
    for (int64_t p = inside[1].begin; p < inside[1].end; ++p) {
      const int64_t row = w[0].PlaceOf(o, tap.at[0]) * x.extent[1] + w[1].PlaceOf(p, tap.at[1]);
      const T* from = x.data + row * x.extent[2];
      const int64_t first = w[2].PlaceOf(0, tap.at[2]);
      T* to = y + (o * size[1] + p) * size[2];
      for (int64_t q = inside[2].begin; q < inside[2].end; ++q)
        to[q] += Product(tap.weight, from[first + q * w[2].stride]);
    }
}

template <class T>
std::vector<T> Convolved(const Conv& op, const ConvElements<T>& in, Eval& e) {
  const HostValue &x = *e.in(0), &w = *e.in(1), &y = e.out(0);
  const PerAxis<WindowAxis> window = InVolume(WindowOver(op, x.shape().size()));
  const PerAxis<int64_t> from = VolumeOf(x.shape()), kernel = VolumeOf(w.shape()),
                         to = VolumeOf(y.shape());
  const int64_t taps = PlacesOf(kernel), places = PlacesOf(to), depth = w.dim(1);
  const int64_t per_group = std::max<int64_t>(w.dim(0) / op.groups, 1);
  std::vector<T> sums(static_cast<size_t>(y.elements()));
  for (int64_t nm = 0; places > 0 && nm < y.dim(0) * y.dim(1); ++nm) {
    const int64_t n = nm / y.dim(1), m = nm % y.dim(1);
    T* out = sums.data() + nm * places;
    if (!in.bias.empty()) std::fill(out, out + places, in.bias[static_cast<size_t>(m)]);
    for (int64_t i = 0; i < depth * taps; ++i) {
      const int64_t channel = n * x.dim(1) + m / per_group * depth + i / taps;
      const T weight = in.weights[static_cast<size_t>(m * depth * taps + i)];
      const Volume<T> volume{from, in.image.data() + channel * PlacesOf(from)};
      AddTap(window, WeighedPlace<T>{PlaceIn(kernel, i % taps), weight}, volume, to, out);
    }
  }
  return sums;
}

}  // namespace

absl::StatusOr<Types> Conv::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &w = in[1].shape();
  FORGE_ASSIGN_OR_RETURN(const Window window, WindowOf(*this, x.size() - 2));
  if (w.size() != x.size()) return InvalidArgument("weights {} for {}", ToText(w), ToText(x));
  if (groups < 1) return InvalidArgument("groups of {}", groups);
  if (w[0].is_constant() && w[0].constant() % groups != 0)
    return InvalidArgument("groups {} does not divide {} output channels", groups, w[0].ToText());
  if (!Unify(x[1], w[1] * groups).ok())
    return InvalidArgument("{} channels are not {} groups of {}", x[1].ToText(), groups,
                           w[1].ToText());
  Dims out{x[0], w[0]};
  for (size_t a = 0; a < window.size(); ++a) {
    FORGE_ASSIGN_OR_RETURN(const Dim n, WindowCount(window[a], x[2 + a], w[2 + a], false));
    out.push_back(n);
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(out))};
}

Values Conv::gradient(const GradArgs& g) const {
  const Value x = g.in[0], weight = g.in[1], dy = g.dout[0];
  Values d{DataGradientOf(*this, x.type().shape(), weight, dy),
           WeightGradientOf(*this, x, weight.type().shape(), dy)};
  if (g.in.size() > 2) d.push_back(g.in[2] ? BiasGradientOf(dy) : Value{});
  return d;
}

absl::Status Conv::evaluate(Eval& e) const {
  const HostValue &x = *e.in(0), &w = *e.in(1);
  const HostValue* bias = e.in(2);
  if (Has(kComplexTypes, x.dtype())) {
    const ConvElements<std::complex<double>> in{
        Complexes(x), Complexes(w), bias ? Complexes(*bias) : std::vector<std::complex<double>>{}};
    Store(Convolved(*this, in, e), e.out(0));
  } else {
    const ConvElements<double> in{Doubles(x), Doubles(w),
                                  bias ? Doubles(*bias) : std::vector<double>{}};
    Store(Convolved(*this, in, e), e.out(0));
  }
  return absl::OkStatus();
}

Cost Conv::cost(TypeSpan in) const {
  const Dims& w = in[1].shape();
  const Dim terms = Product(Dims(w.begin() + 1, w.end()));
  const auto out = infer(in);
  return {.flops = out.ok() ? out->front().elements() * terms * 2 : Dim(0), .terms = terms + 1};
}

namespace {

[[gnu::cold]] Cases ImageCases() {
  return {{Conv{}, {"float[1,3,8,9]", "float[4,3,3,3]", "float[4]"}},
          {Conv{}, {"float[2,5,1,1]", "float[3,5,1,1]"}},
          {Conv{.strides = {2, 1}, .padding = {1, 0, 2, 1}}, {"float[2,4,7,7]", "float[6,4,3,2]"}},
          {Conv{.dilations = {2, 3}, .padding = {2, 3, 2, 3}},
           {"f32[1,2,9,11]", "f32[3,2,3,3]", "f32[3]"}},
          {Conv{.strides = {2, 3}, .dilations = {3, 1}, .padding = {0, 1, 4, 0}},
           {"f32[1,7,13,10]", "f32[5,7,2,5]", "f32[5]"}},
          {Conv{.padding = {-1, 1, 0, -2}}, {"f32[1,3,8,8]", "f32[2,3,3,3]"}},
          {Conv{.groups = 2}, {"float[1,6,5,5]", "float[4,3,3,3]", "float[4]"}},
          {Conv{.padding = {1, 0, 1, 2}}, {"complex[1,3,6,5]", "complex[4,3,3,2]"}},
          {Conv{.padding = {1, 1, 1, 1}, .groups = 4},
           {"float[1,4,6,6]", "float[4,1,3,3]", "float[4]"}},
          {Conv{.strides = {2, 2}, .padding = {2, 2, 2, 2}, .groups = 33},
           {"f32[2,33,11,9]", "f32[33,1,5,5]", "f32[33]"}},
          {Conv{.groups = 3}, {"f32[1,3,6,6]", "f32[6,1,3,3]"}},
          {Conv{.strides = {3, 2}, .dilations = {1, 2}, .padding = {2, -1, 1, 1}, .groups = 2},
           {"f64[2,4,4,6]", "f64[6,2,2,2]", "f64[6]"}},
          {Conv{}, {"f32[1,16,14,14]", "f32[33,16,1,1]", "f32[33]"}},
          {Conv{.strides = {2, 2}}, {"f32[3,8,7,9]", "f32[16,8,1,1]"}},
          {Conv{.padding = {1, 1, 1, 1}}, {"f32[1,17,15,17]", "f32[19,17,3,3]", "f32[19]"}},
          {Conv{.padding = {3, 3, 3, 3}}, {"f32[1,1,28,28]", "f32[8,1,7,7]", "f32[8]"}},
          {Conv{.padding = {1, 1, 1, 1}}, {"f32[1,64,12,12]", "f32[64,64,3,3]", "f32[64]"}},
          {Conv{.padding = {1, 0, 1, 2}}, {"f32[1,32,29,30]", "f32[36,32,3,3]", "f32[36]"}},
          {Conv{}, {"f32[1,1400,8,9]", "f32[1,1400,7,7]"}},
          {Conv{}, {"f32[0,3,8,8]", "f32[4,3,3,3]"}},
          {Conv{.padding = {1, 1, 1, 1}}, {"f32[1,0,4,4]", "f32[2,0,3,3]", "f32[2]"}}};
}

[[gnu::cold]] Cases OtherRankCases() {
  return {{Conv{}, {"float[2,3,9]", "float[4,3,3]", "float[4]"}},
          {Conv{.strides = {3}, .dilations = {2}, .padding = {4, 1}, .groups = 2},
           {"float[1,6,17]", "float[8,3,4]", "float[8]"}},
          {Conv{.padding = {2, -3}, .groups = 5}, {"f32[2,5,20]", "f32[5,1,4]", "f32[5]"}},
          {Conv{.padding = {1, 1}}, {"f32[1,33,40]", "f32[24,33,3]", "f32[24]"}},
          {Conv{}, {"f32[1,4,1]", "f32[3,4,1]"}},
          {Conv{.strides = {2}, .padding = {1, 2}, .groups = 2},
           {"complex[2,4,9]", "complex[6,2,3]", "complex[6]"}},
          {Conv{.padding = {1, 1}}, {"f32[0,3,8]", "f32[4,3,3]"}},
          {Conv{}, {"float[1,2,5,6,7]", "float[3,2,2,3,1]", "float[3]"}},
          {Conv{}, {"complex[1,2,4,3,5]", "complex[2,2,2,3,1]", "complex[2]"}},
          {Conv{.strides = {2, 1, 3},
                .dilations = {1, 3, 2},
                .padding = {1, 0, 2, 0, 3, 1},
                .groups = 2},
           {"float[2,4,5,9,8]", "float[6,2,3,2,2]", "float[6]"}},
          {Conv{.strides = {2, 2, 2}, .padding = {1, 1, 1, 1, 1, 1}, .groups = 3},
           {"f32[1,3,7,6,8]", "f32[6,1,3,3,3]", "f32[6]"}},
          {Conv{.padding = {1, 1, 1, 1, 1, 1}}, {"f32[1,19,5,8,8]", "f32[20,19,3,3,3]", "f32[20]"}},
          {Conv{}, {"f32[1,16,3,4,8]", "f32[24,16,1,1,1]", "f32[24]"}},
          {Conv{.padding = {1, 1, 1, 1, 1, 1}}, {"f32[1,0,2,3,4]", "f32[2,0,3,3,3]", "f32[2]"}}};
}

[[gnu::cold]] Cases BenchCases() {
  return {{.op = Conv{.padding = {1, 1}},
           .in = {"f32[1,384,3000]", "f32[384,384,3]", "f32[384]"},
           .bench = true},
          {.op = Conv{.padding = {1, 1, 1, 1, 1, 1}},
           .in = {"f32[1,32,16,56,56]", "f32[64,32,3,3,3]", "f32[64]"},
           .bench = true},
          {.op = Conv{.padding = {1, 1, 1, 1}},
           .in = {"f32[1,64,56,56]", "f32[64,64,3,3]"},
           .bench = true},
          {.op = Conv{}, .in = {"f32[1,256,56,56]", "f32[64,256,1,1]", "f32[64]"}, .bench = true},
          {.op = Conv{.strides = {2, 2}, .padding = {3, 3, 3, 3}},
           .in = {"f32[1,3,224,224]", "f32[64,3,7,7]", "f32[64]"},
           .bench = true},
          {.op = Conv{.padding = {1, 1, 1, 1}, .groups = 144},
           .in = {"f32[1,144,56,56]", "f32[144,1,3,3]", "f32[144]"},
           .bench = true}};
}

[[gnu::cold]] Cases RefusedCases() {
  return {{Conv{.groups = 3}, {"f32[1,6,6,6]", "f32[8,2,3,3]"}, "groups 3 does not divide 8"},
          {Conv{.groups = 2}, {"f32[1,4,6,6]", "f32[8,4,3,3]"}, "4 channels are not 2 groups"},
          {Conv{.groups = 0}, {"f32[1,4,6,6]", "f32[8,4,3,3]"}, "groups of 0"},
          {Conv{.strides = {0, 1}}, {"f32[1,4,6,6]", "f32[8,4,3,3]"}, "strides of 0"},
          {Conv{.padding = {1, 1}}, {"f32[1,4,6,6]", "f32[8,4,3,3]"}, "padding has 2 numbers"},
          {Conv{}, {"f32[1,4]", "f32[8,4]"}, "0 spatial axes"},
          {Conv{}, {"f32[1,4,2,2,2,2]", "f32[8,4,1,1,1,1]"}, "4 spatial axes"},
          {Conv{}, {"f32[1,4,6]", "f32[8,4,1,1]"}, "weights [8, 4, 1, 1] for [1, 4, 6]"},
          {Conv{.strides = {1, 1}}, {"f32[1,4,6]", "f32[8,4,3]"}, "strides has 2 numbers, not 1"},
          {Conv{}, {"f32[1,4,6,6]", "f32[8,4,7,3]"}, "does not fit"},
          {Conv{}, {"f32[1,4,6,6]", "f32[8,4,0,3]"}, "kernel of 0"},
          {Conv{}, {"f32[1,4,6,6]", "f32[8,4,3,3]", "f32[7]"}, "bias"}};
}

}  // namespace

Cases Conv::cases() {
  Cases all;
  for (Cases (*some)() : {&ImageCases, &OtherRankCases, &BenchCases, &RefusedCases})
    for (Case& c : some()) all.push_back(std::move(c));
  return all;
}

FORGE_DEFINE_OP(Conv)

}  // namespace forge::ir
