// SPDX-License-Identifier: Apache-2.0
// Convolution of 3 x 3 by Winograd's transforms: tiles of the input and the kernels are
// transformed, multiplied as one matrix product for each place of a tile, and transformed back. A
// result of m x m takes (m + 2)^2 products instead of 9 m^2. The matrices are those of A. Lavin and
// S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2015).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/schedules/matmul/gemm.h"
#include "codegen/schedules/split.h"
#include "codegen/schedules/window/window.h"

namespace forge::codegen {
namespace {
namespace conv_winograd {

using ir::Dim;
using ir::Dims;

struct ConvWinograd {
  int64_t tile = 4;  // of the result, along rows and columns
  static constexpr Field kFields[] = {
      FieldOf<&ConvWinograd::tile>("tile", "Of the result, along either axis.", "2|4")};
};

constexpr int64_t kWorkgroup = 64;
enum Matrix { kKernels, kInputs, kProducts };

// A matrix of coefficients by rows.
struct Coefficients {
  size_t columns;
  std::span<const double> values;
  size_t rows() const { return values.size() / columns; }
};

// To a kernel's, an input's and from a product's tile, and from a kernel's tile back to its 3 x 3;
// for results of 2 x 2 and of 4 x 4.
struct Transforms {
  Coefficients kernel, input, output, weights;
};

constexpr double kKernel2[] = {1, 0, 0, .5, .5, .5, .5, -.5, .5, 0, 0, 1};
constexpr double kInput2[] = {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1};
constexpr double kOutput2[] = {1, 1, 1, 0, 0, 1, -1, -1};
constexpr double kWeights2[] = {1, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1};

constexpr double kKernel4[] = {1. / 4,  0,        0,       -1. / 6, -1. / 6, -1. / 6,
                               -1. / 6, 1. / 6,   -1. / 6, 1. / 24, 1. / 12, 1. / 6,
                               1. / 24, -1. / 12, 1. / 6,  0,       0,       1};
constexpr double kInput4[] = {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                              0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1};
constexpr double kOutput4[] = {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0,
                               0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1};
constexpr double kWeights4[] = {4, 0, 0, 0, 0, 0, 0, -3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1};

Transforms TransformsFor(int64_t tile) {
  if (tile == 2) return {{3, kKernel2}, {4, kInput2}, {4, kOutput2}, {4, kWeights2}};
  return {{3, kKernel4}, {6, kInput4}, {6, kOutput4}, {6, kWeights4}};
}

// How many times the error of a direct sum the error of a tile is, in the mean of squares over
// numbers at random: each axis adds up rounded products that are larger than the three of a direct
// sum.
double Amplification(const Transforms& t) {
  const auto squares = [](const Coefficients& c, size_t row) {
    double sum = 0;
    for (const double x : c.values.subspan(row * c.columns, c.columns)) sum += x * x;
    return sum;
  };
  double worst = 0;
  for (size_t i = 0; i < t.output.rows(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < t.output.columns; ++j) {
      const double x = t.output.values[i * t.output.columns + j];
      sum += x * x * squares(t.input, j) * squares(t.kernel, j);
    }
    worst = std::max(worst, sum / static_cast<double>(t.kernel.columns));
  }
  return worst;
}

// Transformed kernels as a constant: [place, channel, input], one matrix after the other.
class WinogradEncoding final : public ir::Encoding {
 public:
  explicit WinogradEncoding(int64_t tile) : tile_(tile), name_(fmt::format("winograd({})", tile)) {}
  std::string_view name() const override { return name_; }
  absl::StatusOr<Dim> Bytes(DType t, const Dims& shape) const override {
    if (t != DType::kF32 || shape.size() != 4)
      return InvalidArgument("{} holds kernels of f32, not {} of rank {}", name_, Name(t),
                             shape.size());
    return ir::Type::Tensor(t, {(tile_ + 2) * (tile_ + 2), shape[0], shape[1]}).bytes();
  }
  absl::Status Decode(DType, std::span<const int64_t> shape, std::span<const uint8_t> raw,
                      std::span<uint8_t> dense) const override {
    const Coefficients back = TransformsFor(tile_).weights;
    const auto edge = back.columns, kernels = static_cast<size_t>(shape[0] * shape[1]);
    const auto transformed = [&](size_t kernel, size_t place) {
      float x;
      std::memcpy(&x, raw.data() + (place * kernels + kernel) * sizeof(x), sizeof(x));
      return static_cast<double>(x);
    };
    for (size_t k = 0; k < kernels; ++k) {
      for (size_t at = 0; at < 9; ++at) {
        double sum = 0;
        for (size_t p = 0; p < edge * edge; ++p) {
          const double factor =
              back.values[at / 3 * edge + p / edge] * back.values[at % 3 * edge + p % edge];
          if (factor != 0) sum += factor * transformed(k, p);
        }
        const auto weight = static_cast<float>(sum);
        std::memcpy(dense.data() + (k * 9 + at) * sizeof(weight), &weight, sizeof(weight));
      }
    }
    return absl::OkStatus();
  }
  int64_t tile() const { return tile_; }

 private:
  int64_t tile_;
  std::string name_;
};

// Null where it is none.
const WinogradEncoding* EncodingOf(const ir::Type& t) {
  return dynamic_cast<const WinogradEncoding*>(t.encoding().get());
}

// The sum of x[i] * factors[i], in order; what is 0 is left out.
Val Combination(std::span<const double> factors, const Vals& x, size_t first, size_t step) {
  Val sum;
  for (size_t i = 0; i < factors.size(); ++i) {
    const double f = factors[i];
    if (f == 0) continue;
    const Val& v = x[first + i * step];
    if (!sum)
      sum = f == 1 ? v : v * f;
    else
      sum = f == 1 ? sum + v : f == -1 ? sum - v : sum + v * f;
  }
  return sum;
}

// T x T' of a square x.
Vals Transform(const Coefficients& t, const Vals& x) {
  const auto row = [&](size_t i) { return t.values.subspan(i * t.columns, t.columns); };
  Vals half, out;
  for (size_t i = 0; i < t.rows(); ++i)
    for (size_t j = 0; j < t.columns; ++j) half.push_back(Combination(row(i), x, j, t.columns));
  for (size_t i = 0; i < t.rows(); ++i)
    for (size_t j = 0; j < t.rows(); ++j)
      out.push_back(Combination(row(j), half, i * t.columns, 1));
  return out;
}

// Numbers that follow from the region and the tile.
struct Plan {
  Plan(const Region& r, const ConvShape& conv, int64_t size)
      : shape(conv),
        tile(size),
        edge(size + 2),
        places(edge * edge),
        tile_grid{shape.batch, CeilDiv(shape.places[0], size), CeilDiv(shape.places[1], size)},
        tiles(ir::Product(tile_grid)),
        type(AccumulatorOf(r.anchor_output().dtype())),
        extents{Dims{places, shape.channels, shape.group_inputs},
                Dims{places, shape.group_inputs, tiles}, Dims{places, shape.channels, tiles}},
        has_kernels(EncodingOf(r.anchor_inputs()[1]) != nullptr) {
    int next = r.scratch_begin();
    for (const Matrix m : {kKernels, kInputs, kProducts})
      operands[m] = m == kKernels && has_kernels ? *r.ArgumentOf(1) : next++;
  }
  Dim BytesOf(Matrix m) const { return ir::Product(extents[m]) * ElementBytes(type); }
  // Channels, then images, rows and columns of tiles; and the tile of such a place.
  Dims SpaceOf(const Dim& of) const { return {of, tile_grid[0], tile_grid[1], tile_grid[2]}; }
  Dim TileAt(const Dims& place) const { return Flatten({place[1], place[2], place[3]}, tile_grid); }
  Val Load(Emission& m, Matrix from, const Dims& index, int lanes = 1) const {
    return m.e.LoadFrom(operands[from], type.Lanes(lanes),
                        FloorDiv(Flatten(index, extents[from]), lanes));
  }
  void Store(Emission& m, Matrix to, const Dims& index, Val v) const {
    m.e.StoreTo(operands[to], FloorDiv(Flatten(index, extents[to]), v.type().lanes), v);
  }

  ConvShape shape;
  int64_t tile, edge, places;  // edge: of a tile of the input
  Dims tile_grid;              // images, rows and columns of tiles
  Dim tiles;
  Type type;
  Dims extents[3];       // by Matrix
  bool has_kernels;      // made before
  int operands[3] = {};  // by Matrix: scratch, unless it was made before
};

std::optional<ConvShape> WinogradOf(const Region& r) {
  std::optional<ConvShape> s = ConvOf(r);
  const auto plain = [](const WindowAxis& a) {
    return a.kernel == 3 && a.stride == 1 && a.dilation == 1;
  };
  if (s && (s->op.groups != 1 || s->window.size() != 2 ||
            !std::all_of(s->window.begin(), s->window.end(), plain)))
    return std::nullopt;
  if (s && !r.is_dense() && (!EncodingOf(r.anchor_inputs()[1]) || !r.ArgumentOf(1)))
    return std::nullopt;
  return s;
}

// The error of sums of K terms S may be 4 sqrt(K) u S (docs/semantics.md). The largest of a tile's
// was measured to be 0.6 to 0.9 times u S and the amplification among 30,000 elements at random of
// 16 channels and more; fewer cancel less.
Verdict ErrorFits(const Region& r, int64_t tile) {
  constexpr double kMargin = 1.5;
  const ir::AnyOp& op = r.anchor()->op;
  const Dim terms = op.Cost(r.anchor_inputs()).terms;
  const double bound = 4 * std::sqrt(static_cast<double>(terms.min()));
  if (kMargin * Amplification(TransformsFor(tile)) <= bound) return Verdict::Yes();
  return Verdict::No(fmt::format("the error of tiles of {} is not within the op's bound", tile));
}

ConvWinograd Defaults(const Region& r, const ConvShape&) {
  if (const WinogradEncoding* made = EncodingOf(r.anchor_inputs()[1])) return {made->tile()};
  return ConvWinograd{.tile = r.caps().few_registers() || !ErrorFits(r, 4) ? 2 : 4};
}

// With fewer channels the transforms take longer than the products they save, and with fewer
// products three more launches do.
constexpr int64_t kLeastChannels = 16, kLeastTiles = 64, kLeastProducts = int64_t{1} << 23;

Verdict Fits(const Region& r, const ConvShape& s, const ConvWinograd& t) {
  const Plan plan(r, s, t.tile);
  if (r.anchor_output().dtype() != DType::kF32) return Verdict::No("it is not of f32");
  if (r.caps().runs_on_cpu && !ShufflesAreQuick(r.caps()))
    return Verdict::No("barriers are dear on this device");
  if (const auto* made = EncodingOf(r.anchor_inputs()[1]); made && made->tile() != t.tile)
    return Verdict::No("the kernels were transformed for another tile");
  if (Verdict v = ErrorFits(r, t.tile); !v) return v;
  if (!plan.tiles.is_constant() || !s.channels.is_constant() || !s.group_inputs.is_constant())
    return Verdict::No("the size of scratch is not known");
  const Dim products = r.anchor_output().elements() * s.group_inputs * 9;
  if (s.channels.max() < kLeastChannels || s.group_inputs.max() < kLeastChannels ||
      plan.tiles.max() < kLeastTiles || products.max() < kLeastProducts)
    return Verdict::No("the convolution is small");
  const Dim bytes = plan.BytesOf(kKernels) + plan.BytesOf(kInputs) + plan.BytesOf(kProducts);
  if (Verdict v = ScratchFits(r, bytes.max()); !v) return v;
  return WorkgroupFits(kWorkgroup, r.caps());
}

// How kernels of `shape` are transformed: the tap at an index, and what becomes of a number.
struct KernelTransform {
  int64_t tile;
  Dims shape;
  std::function<Val(Emission&, const Dims& index)> tap;
  std::function<void(Emission&, const Dims& place, Val)> store;  // place, channel, input
};

Launch EmitKernels(const Region& r, const KernelTransform& t, const std::string& name) {
  return ForPlaces(r, name, kWorkgroup, {t.shape[0], t.shape[1]}, [&](Emission& m, const Dims& at) {
    Vals taps;
    for (int64_t i = 0; i < 9; ++i) taps.push_back(t.tap(m, {at[0], at[1], i / 3, i % 3}));
    const Vals made = Transform(TransformsFor(t.tile).kernel, taps);
    for (size_t i = 0; i < made.size(); ++i)
      t.store(m, {static_cast<int64_t>(i), at[0], at[1]}, made[i]);
  });
}

Launch EmitKernels(const Region& r, const Plan& plan, const std::string& name) {
  return EmitKernels(
      r,
      {.tile = plan.tile,
       .shape = r.anchor_inputs()[1].shape(),
       .tap = [](Emission& m, const Dims& index) { return m.e.At(1, index); },
       .store = [&](Emission& m, const Dims& at, Val v) { plan.Store(m, kKernels, at, v); }},
      name);
}

Launch EmitInputs(const Region& r, const Plan& plan, const std::string& name) {
  const ConvShape& s = plan.shape;
  return ForPlaces(r, name, kWorkgroup, plan.SpaceOf(s.group_inputs),
                   [&](Emission& m, const Dims& place) {
                     Vals pixels;
                     for (int64_t i = 0; i < plan.places; ++i) {
                       const Dim row = s.window[0].At(place[2] * plan.tile, i / plan.edge);
                       const Dim column = s.window[1].At(place[3] * plan.tile, i % plan.edge);
                       pixels.push_back(LoadPadded(m, {place[1], place[0], row, column}));
                     }
                     const Vals made = Transform(TransformsFor(plan.tile).input, pixels);
                     const Dim tile = plan.TileAt(place);
                     for (size_t i = 0; i < made.size(); ++i)
                       plan.Store(m, kInputs, {static_cast<int64_t>(i), place[0], tile}, made[i]);
                   });
}

Launch EmitProducts(const Region& r, const Plan& plan, const std::string& name) {
  Gemm g{.batch = plan.places, .k = plan.shape.group_inputs, .dtype = plan.type.elem};
  g.a = {
      .extent = plan.shape.channels,
      .load = [&](Emission& m, const Factor::At& at,
                  int lanes) { return plan.Load(m, kKernels, {at.batch, at.along, at.k}, lanes); },
      .lanes_k = LanesFor(g.k)};
  g.b = {
      .extent = plan.tiles,
      .load = [&](Emission& m, const Factor::At& at,
                  int lanes) { return plan.Load(m, kInputs, {at.batch, at.k, at.along}, lanes); },
      .lanes_along = LanesFor(plan.tiles)};
  g.store = [&](Emission& m, const Gemm::At& at, Val v) {
    plan.Store(m, kProducts, {at.batch, at.m, at.n}, v);
  };
  return ShufflesAreQuick(r.caps()) ? EmitShuffleProduct(r, g, name)
                                    : EmitSharedProduct(r, g, name);
}

Launch EmitOutputs(const Region& r, const Plan& plan, const std::string& name) {
  const ConvShape& s = plan.shape;
  const auto lanes = static_cast<int>(s.places[1].divisor() % plan.tile == 0 ? plan.tile : 1);
  return ForPlaces(
      r, name, kWorkgroup, plan.SpaceOf(s.channels), [&](Emission& m, const Dims& place) {
        const Dim tile = plan.TileAt(place);
        Vals products;
        for (int64_t i = 0; i < plan.places; ++i)
          products.push_back(plan.Load(m, kProducts, {i, place[0], tile}));
        Vals made = Transform(TransformsFor(plan.tile).output, products);
        if (s.biased) {
          const Val bias = m.e.At(2, {place[0]});
          for (Val& v : made) v = v + bias;
        }
        for (size_t i = 0; i < made.size(); i += static_cast<size_t>(lanes)) {
          const auto first = static_cast<int64_t>(i);
          const Position row = Guard(m, place[2] * plan.tile + first / plan.tile, s.places[0]);
          const Position column = Guard(m, place[3] * plan.tile + first % plan.tile, s.places[1]);
          const auto part = std::span(made).subspan(i, static_cast<size_t>(lanes));
          IfInside(m.b, Both(row.inside, column.inside), [&] {
            m.e.Finish({place[1], place[0], row.at, column.at + m.e.Lane(lanes)}, Packed(part),
                       lanes);
          });
        }
      });
}

Program Emit(const Region& r, const ConvShape& s, const ConvWinograd& t) {
  const Plan plan(r, s, t.tile);
  Program out{.kernel = fmt::format("conv_winograd_{0}x{0}", plan.tile)};
  for (const Matrix m : {kKernels, kInputs, kProducts})
    if (m != kKernels || !plan.has_kernels) out.scratch_bytes.push_back(plan.BytesOf(m).max());
  if (!plan.has_kernels) out.launches.push_back(EmitKernels(r, plan, out.kernel + "_kernels"));
  out.launches.push_back(EmitInputs(r, plan, out.kernel + "_inputs"));
  out.launches.push_back(EmitProducts(r, plan, out.kernel + "_products"));
  out.launches.push_back(EmitOutputs(r, plan, out.kernel + "_outputs"));
  return out;
}

std::optional<Prepared> Prepares(const Region& r, const void* parameters) {
  const std::optional<int> kernels = r.ArgumentOf(1);
  if (!kernels) return std::nullopt;
  const int64_t tile = static_cast<const ConvWinograd*>(parameters)->tile;
  return Prepared{*kernels, std::make_shared<WinogradEncoding>(tile)};
}

struct NoParameters {
  static constexpr Fields kFields = {};
};

// Kernels to be transformed on their own.
bool AreKernels(const Region& r) {
  return r.anchor() == nullptr && r.body().nodes().size() == 1 &&
         EncodingOf(r.anchor_output()) != nullptr && r.body().arguments().size() == 1 &&
         r.body().type(r.body().arguments()[0].value).encoding() == nullptr;
}

Program EmitAlone(const Region& r, const NoParameters&) {
  constexpr int kFrom = 0, kTo = 1;
  const int64_t tile = EncodingOf(r.anchor_output())->tile();
  const Dims& shape = r.anchor_output().shape();
  const Dims extents{(tile + 2) * (tile + 2), shape[0], shape[1]};
  return OneLaunch(EmitKernels(
      r,
      {.tile = tile,
       .shape = shape,
       .tap = [&](Emission& m,
                  const Dims& index) { return m.e.LoadFrom(kFrom, kF32, Flatten(index, shape)); },
       .store = [&](Emission& m, const Dims& at,
                    Val v) { m.e.StoreTo(kTo, Flatten(at, extents), v); }},
      fmt::format("winograd_{0}x{0}_kernels", tile)));
}

}  // namespace conv_winograd
}  // namespace

const Schedule kConvWinograd = [] {
  Schedule s =
      ScheduleOn<conv_winograd::ConvWinograd, conv_winograd::WinogradOf, conv_winograd::Defaults,
                 conv_winograd::Fits, conv_winograd::Emit>("conv_winograd");
  s.prepares = conv_winograd::Prepares;
  s.takes_encodings = true;
  return s;
}();

const Schedule kWinogradKernels = [] {
  Schedule s = ScheduleOf<conv_winograd::NoParameters, conv_winograd::AreKernels,
                          [](const Region&) { return conv_winograd::NoParameters(); },
                          [](const Region& r, const conv_winograd::NoParameters&) {
                            return WorkgroupFits(conv_winograd::kWorkgroup, r.caps());
                          },
                          conv_winograd::EmitAlone>("winograd_kernels");
  s.takes_encodings = true;
  return s;
}();

}  // namespace forge::codegen
