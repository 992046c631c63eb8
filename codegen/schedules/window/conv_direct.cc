// SPDX-License-Identifier: Apache-2.0
// Direct convolution: an invocation computes a register tile of output channels, rows and columns,
// the last two spatial axes, without shared memory. What fits every device and any shape; of a
// depthwise convolution it slides its window over a tile of one channel, and loads what the windows
// share once.
#include <utility>

#include "codegen/schedules/window/window.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// What both schedules are told.
struct ConvTiles {
  int64_t workgroup = 64;
  int64_t channels = 1, rows = 1, columns = 1;  // of the output, to an invocation
};

class ConvTile {
 public:
  // tile: image, group, and along each of the axes: channels, then the spatial ones
  ConvTile(Emission& m, const ConvShape& shape, std::span<const TiledAxis> axes, const Dims& tile);
  // Emits loads, sums, epilogue, stores.
  void Run();

 private:
  struct Tap {
    Dim channel;
    Dims at;
  };
  // The places of a tile along the last axis, by those along the other spatial axes.
  struct Line {
    Dims at;
    Val inside;  // null: always
  };
  static std::vector<Line> LinesOf(Emission& m, std::span<const TiledAxis> axes, const Dims& tile);
  Vals Start();
  Vals Accumulate(const Tap& tap, Vals sums);
  Val Input(const Tap& tap, const Line& line, size_t column);
  void Finish(const Vals& sums);

  Emission& m_;
  const ConvShape& shape_;
  const Dim n_, group_;
  std::vector<Position> channel_;  // channels of the whole result
  const std::vector<Line> lines_;
  const ColumnTile columns_;
};

ConvTile::ConvTile(Emission& m, const ConvShape& shape, std::span<const TiledAxis> axes,
                   const Dims& tile)
    : m_(m),
      shape_(shape),
      n_(tile[0]),
      group_(tile[1]),
      channel_(axes[0].All(m, tile[2])),
      lines_(LinesOf(m, axes, tile)),
      columns_(m, shape.window, axes.back(), tile.back()) {
  for (Position& channel : channel_) channel.at = group_ * shape.group_outputs + channel.at;
}

std::vector<ConvTile::Line> ConvTile::LinesOf(Emission& m, std::span<const TiledAxis> axes,
                                              const Dims& tile) {
  std::vector<Line> lines(1);
  for (size_t a = 1; a + 1 < axes.size(); ++a) {
    const std::vector<Line> outer = std::exchange(lines, {});
    const std::vector<Position> along = axes[a].All(m, tile[2 + a]);
    for (const Line& line : outer)
      for (const Position& p : along) {
        lines.push_back({line.at, Both(line.inside, p.inside)});
        lines.back().at.push_back(p.at);
      }
  }
  return lines;
}

Vals ConvTile::Start() {
  const Type type = AccumulatorOf(m_.region.anchor_output().dtype());
  Vals sums;
  for (const Position& channel : channel_) {
    Val first = shape_.biased ? m_.e.At(2, {channel.at}) : m_.b.Literal(type, 0);
    sums.insert(sums.end(), lines_.size() * columns_.size(), first);
  }
  return sums;
}

Val ConvTile::Input(const Tap& tap, const Line& line, size_t column) {
  const Dim channel = group_ * shape_.group_inputs + tap.channel;
  Dims out = line.at;
  out.push_back(columns_.at(column));
  return columns_.Load(IndexOf(shape_.window, n_, channel, out, tap.at), tap.at, column);
}

Vals ConvTile::Accumulate(const Tap& tap, Vals sums) {
  Vals x;
  for (const Line& line : lines_)
    for (size_t j = 0; j < columns_.size(); ++j) x.push_back(Input(tap, line, j));
  for (size_t o = 0; o < channel_.size(); ++o) {
    Dims index{channel_[o].at, tap.channel};
    index.insert(index.end(), tap.at.begin(), tap.at.end());
    Val w = m_.e.At(1, index);
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
    for (const Line& line : lines_) {
      IfInside(m_.b, Both(channel.inside, line.inside), [&] {
        Dims index{n_, channel.at};
        index.insert(index.end(), line.at.begin(), line.at.end());
        columns_.Finish(index, rest.first(columns_.size()));
      });
      rest = rest.subspan(columns_.size());
    }
}

void ConvTile::Run() {
  Finish(m_.Loop(shape_.group_inputs, Start(), [&](const Dim& channel, Vals carried) {
    return ForTaps(m_, shape_.window, std::move(carried), [&](const Dims& tap, Vals sums) {
      return Accumulate({channel, tap}, std::move(sums));
    });
  }));
}

Verdict Fits(const Region& r, const ConvShape& shape, const ConvTiles& t) {
  if (!shape.known_window()) return Verdict::No("the window's extent is not known");
  if (t.rows > 1 && shape.window.size() < 2) return Verdict::No("it has one spatial axis");
  return WorkgroupFits(t.workgroup, r.caps());
}

// Every invocation runs one tile.
Program EmitTiles(const Region& r, const ConvShape& shape, const ConvTiles& t,
                  const std::string& name) {
  std::vector<TiledAxis> axes{{shape.group_outputs, t.channels}};
  const size_t rank = shape.places.size();
  for (size_t a = 0; a < rank; ++a)
    axes.push_back({shape.places[a], a + 1 == rank ? t.columns : a + 2 == rank ? t.rows : 1});
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

// Large tiles share what windows load; GPUs have few registers for them, and lanes to fill when the
// result is small. On a CPU another row of outputs costs as much code as it saves loads, and code
// is what a first run waits for.
constexpr int64_t kManyOutputs = 1 << 14;
constexpr ConvTiles kOnCpu = {32, 1, 1, 16}, kOfMany = {64, 1, 2, 8}, kOfFew = {64, 1, 1, 4};

ConvDepthwise DepthwiseDefaults(const Region& r, const ConvShape& shape) {
  const bool many = r.anchor_output().elements().max() >= kManyOutputs && !r.caps().few_registers();
  ConvDepthwise t{r.caps().runs_on_cpu ? kOnCpu : many ? kOfMany : kOfFew};
  const size_t rank = shape.places.size();
  t.rows = rank > 1 ? WholeTile(shape.places[rank - 2], t.rows, 1) : 1;
  t.columns = WholeTile(shape.places.back(), t.columns, 4);
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
  t.columns = TileSize(shape.places.back(), 4);
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
