// SPDX-License-Identifier: Apache-2.0
// Direct convolution: an invocation computes a register tile of output channels, rows and columns,
// without shared memory. What fits every device and any shape; of a depthwise convolution it slides
// its window over a tile of one channel, and loads what the windows share once.
#include "codegen/schedules/window.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

constexpr int kVector = 4;

// What both schedules are told.
struct ConvTiles {
  int64_t workgroup = 64;
  int64_t channels = 1, rows = 1, columns = 1;  // of the output, to an invocation
};

class ConvTile {
 public:
  // tile: image, group, and along each of the axes
  ConvTile(Emission& m, const ConvShape& shape, std::span<const TiledAxis, 3> axes,
           const Dims& tile);
  // Emits loads, sums, epilogue, stores.
  void Run();

 private:
  struct Tap {
    Dim channel, row, column;
  };
  Vals Start();
  Vals Accumulate(const Tap& tap, Vals sums);
  Val Input(const Tap& tap, size_t row, size_t column);
  Val InputFromVector(const Tap& tap, const Dim& channel, const Dim& row, size_t column);
  void Finish(const Vals& sums);

  Emission& m_;
  const ConvShape& shape_;
  const TiledAxis& columns_;
  const bool vectors_;  // input columns are loaded as aligned vectors of 4
  const Dim n_, group_, first_column_;
  std::vector<Position> channel_, row_, column_;  // channels of the whole result
};

ConvTile::ConvTile(Emission& m, const ConvShape& shape, std::span<const TiledAxis, 3> axes,
                   const Dims& tile)
    : m_(m),
      shape_(shape),
      columns_(axes[2]),
      vectors_(columns_.size % kVector == 0 && columns_.exact() &&
               LanesAlongLast(m.region, 0) == kVector),
      n_(tile[0]),
      group_(tile[1]),
      first_column_(tile[4] * columns_.size),
      channel_(axes[0].All(m, tile[2])),
      row_(axes[1].All(m, tile[3])),
      column_(axes[2].All(m, tile[4])) {
  for (Position& channel : channel_) channel.at = group_ * shape.group_outputs + channel.at;
}

Vals ConvTile::Start() {
  const Type type = AccumulatorOf(m_.region.anchor_output().dtype());
  Vals sums;
  for (const Position& channel : channel_) {
    Val first = shape_.biased ? m_.e.At(2, {channel.at}) : m_.b.Literal(type, 0);
    sums.insert(sums.end(), row_.size() * column_.size(), first);
  }
  return sums;
}

// Windows overlap: their vectors are equal values, hence loaded once.
Val ConvTile::InputFromVector(const Tap& tap, const Dim& channel, const Dim& row, size_t column) {
  const WindowAxis& axis = shape_.column;
  const int64_t offset = static_cast<int64_t>(column) * axis.stride +
                         tap.column.constant() * axis.dilation - axis.padding;
  const int64_t component = ((offset % kVector) + kVector) % kVector;
  const Position at = Guard(m_, row, shape_.row.extent);
  const Position first = Guard(m_, first_column_ * axis.stride + (offset - component), axis.extent);
  const Dims index{n_, channel, at.at, first.at + m_.e.Lane(kVector)};
  Val v = m_.b.Extract(m_.e.At(0, index, kVector), static_cast<int>(component));
  return Where(Both(at.inside, first.inside), v, 0);
}

Val ConvTile::Input(const Tap& tap, size_t row, size_t column) {
  const Dim channel = group_ * shape_.group_inputs + tap.channel;
  const Dim in_row = shape_.row.At(row_[row].at, tap.row);
  if (vectors_ && tap.column.is_constant()) return InputFromVector(tap, channel, in_row, column);
  const Dim in_column = shape_.column.At(column_[column].at, tap.column);
  return LoadPadded(m_, {n_, channel, in_row, in_column});
}

Vals ConvTile::Accumulate(const Tap& tap, Vals sums) {
  Vals x;
  for (size_t i = 0; i < row_.size(); ++i)
    for (size_t j = 0; j < column_.size(); ++j) x.push_back(Input(tap, i, j));
  for (size_t o = 0; o < channel_.size(); ++o) {
    Val w = m_.e.At(1, {channel_[o].at, tap.channel, tap.row, tap.column});
    for (size_t i = 0; i < x.size(); ++i) {
      Val& sum = sums[o * x.size() + i];
      sum = fma(w, x[i], sum);
    }
  }
  return sums;
}

void ConvTile::Finish(const Vals& sums) {
  auto rest = std::span(sums);
  for (const Position& channel : channel_)
    for (const Position& row : row_) {
      IfInside(m_.b, Both(channel.inside, row.inside), [&] {
        FinishRow(m_, columns_, column_, rest.first(column_.size()), [&](const Dim& first, Val v) {
          const int lanes = v.type().lanes;
          m_.e.Finish({n_, channel.at, row.at, first + m_.e.Lane(lanes)}, v, lanes);
        });
      });
      rest = rest.subspan(column_.size());
    }
}

void ConvTile::Run() {
  Finish(m_.Loop(shape_.group_inputs, Start(), [&](const Dim& channel, Vals carried) {
    return ForTaps(m_, shape_.row.kernel, shape_.column.kernel, std::move(carried),
                   [&](const Dim& r, const Dim& s, Vals sums) {
                     return Accumulate({channel, r, s}, std::move(sums));
                   });
  }));
}

Verdict Fits(const Region& r, const ConvShape& shape, const ConvTiles& t) {
  if (!shape.known_window()) return Verdict::No("the window's extent is not known");
  return WorkgroupFits(t.workgroup, r.caps());
}

// Every invocation runs one tile.
Program EmitTiles(const Region& r, const ConvShape& shape, const ConvTiles& t,
                  const std::string& name) {
  const TiledAxis axes[] = {
      {shape.group_outputs, t.channels}, {shape.rows, t.rows}, {shape.columns, t.columns}};
  Dims space{shape.batch, shape.op.groups};
  for (const TiledAxis& axis : axes) space.push_back(axis.count());
  return OneLaunch(ForPlacesApart(r, name, t.workgroup, space, [&](Emission& m, const Dims& tile) {
    ConvTile(m, shape, axes, tile).Run();
  }));
}

// ---- depthwise ----------------------------------------------------------------------------------

struct ConvDepthwise : ConvTiles {
  static constexpr Field kFields[] = {
      FieldOf<&ConvDepthwise::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&ConvDepthwise::rows>("rows", "Output rows to an invocation.", "1|2|3|4"),
      FieldOf<&ConvDepthwise::columns>("columns", "Output columns to an invocation.",
                                       "1|2|4|8|16")};
};

std::optional<ConvShape> DepthwiseOf(const Region& r) {
  std::optional<ConvShape> s = ConvOf(r);
  if (s && (s->op.groups == 1 || !(s->group_inputs == Dim(1)))) return std::nullopt;
  return s;
}

// The largest size up to `most` whose tiles are all whole, a multiple of `step` where there is one;
// what lies beyond an edge is tested at each load, which costs more than small tiles.
int64_t WholeTile(const Dim& extent, int64_t most, int64_t step) {
  for (int64_t t = most / step * step; t >= step; t -= step)
    if (extent.divisor() % t == 0) return t;
  return step == 1 ? 1 : TileSize(extent, most);
}

// Large tiles share what windows load; GPUs have few registers for them, and lanes to fill when the
// result is small. On a CPU another row of outputs costs as much code as it saves loads, and code
// is what a first run waits for.
constexpr int64_t kManyOutputs = 1 << 14;
constexpr ConvTiles kOnCpu = {32, 1, 1, 16}, kOfMany = {64, 1, 2, 8}, kOfFew = {64, 1, 1, 4};

ConvDepthwise DepthwiseDefaults(const Region& r, const ConvShape& shape) {
  const bool many = r.anchor_output().elements().max() >= kManyOutputs && !r.caps().few_registers();
  ConvDepthwise t{r.caps().runs_on_cpu ? kOnCpu : many ? kOfMany : kOfFew};
  t.rows = WholeTile(shape.rows, t.rows, 1);
  t.columns = WholeTile(shape.columns, t.columns, 4);
  return t;
}

Program DepthwiseEmit(const Region& r, const ConvShape& shape, const ConvDepthwise& t) {
  return EmitTiles(r, shape, t, fmt::format("conv_depthwise_{}x{}", t.rows, t.columns));
}

// ---- any ----------------------------------------------------------------------------------------

struct ConvDirect : ConvTiles {
  static constexpr Field kFields[] = {
      FieldOf<&ConvDirect::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&ConvDirect::channels>("channels", "Output channels to an invocation.", "1|2|4|8"),
      FieldOf<&ConvDirect::rows>("rows", "Output rows to an invocation.", "1|2"),
      FieldOf<&ConvDirect::columns>("columns", "Output columns to an invocation.", "1|2|4|8")};
};

ConvDirect DirectDefaults(const Region& r, const ConvShape& shape) {
  ConvDirect t;
  t.channels = TileSize(shape.group_outputs, r.caps().few_registers() ? 4 : 8);
  t.columns = TileSize(shape.columns, 4);
  return t;
}

Program DirectEmit(const Region& r, const ConvShape& shape, const ConvDirect& t) {
  return EmitTiles(r, shape, t, fmt::format("conv_direct_{}x{}x{}", t.channels, t.rows, t.columns));
}

}  // namespace

const Schedule kConvDepthwise =
    ScheduleOn<ConvDepthwise, DepthwiseOf, DepthwiseDefaults, Fits, DepthwiseEmit>(
        "conv_depthwise");
const Schedule kConvDirect =
    ScheduleOn<ConvDirect, ConvOf, DirectDefaults, Fits, DirectEmit>("conv_direct");

}  // namespace forge::codegen
