// SPDX-License-Identifier: Apache-2.0
// Direct convolution: an invocation computes a register tile of output channels, rows and columns.
// Loads that the taps of a tile share are made once, since equal instructions are one.
#include "codegen/schedules/list.h"
#include "codegen/schedules/window.h"
#include "ir/ops/conv2d.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

struct ConvDirect {
  int64_t workgroup = 64;
  int64_t channels = 1, rows = 1, columns = 1;  // of the output, to an invocation
  static constexpr Field kFields[] = {
      FieldOf<&ConvDirect::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&ConvDirect::channels>("channels", "Output channels to an invocation.", "1|2|4|8"),
      FieldOf<&ConvDirect::rows>("rows", "Output rows to an invocation.", "1|2"),
      FieldOf<&ConvDirect::columns>("columns", "Output columns to an invocation.", "1|2|4|8")};
};

struct Shape {
  const ir::Conv2d& op;
  Dim batch, channels, rows, columns;  // of the output
  Dim group_outputs, group_inputs;     // channels of one group
  bool biased;
  WindowAxis row, column;

  explicit Shape(const Region& r)
      : op(*r.AnchorAs<ir::Conv2d>()),
        batch(r.anchor_output().shape()[0]),
        channels(r.anchor_output().shape()[1]),
        rows(r.anchor_output().shape()[2]),
        columns(r.anchor_output().shape()[3]),
        group_outputs(FloorDiv(channels, op.groups)),
        group_inputs(r.anchor_inputs()[1].shape()[1]),
        biased(r.anchor_inputs().size() > 2 && r.anchor_inputs()[2]),
        row(Axis(r, 0)),
        column(Axis(r, 1)) {}

 private:
  static WindowAxis Axis(const Region& r, size_t i) {
    const auto& op = *r.AnchorAs<ir::Conv2d>();
    const Dim& taps = r.anchor_inputs()[1].shape()[2 + i];
    return {.extent = r.anchor_inputs()[0].shape()[2 + i],
            .kernel = taps.is_constant() ? taps.constant() : 0,
            .stride = op.strides[i],
            .dilation = op.dilations[i],
            .padding = op.padding[i]};
  }
};

bool Takes(const Region& r) { return r.AnchorAs<ir::Conv2d>() != nullptr; }

std::shared_ptr<void> Defaults(const Region& r) {
  const Shape shape(r);
  ConvDirect t;
  t.channels = TileSize(shape.group_outputs, 8);
  t.columns = TileSize(shape.columns, t.channels > 1 ? 4 : 8);
  t.rows = t.channels * t.columns <= 4 ? TileSize(shape.rows, 2) : 1;
  return Boxed(t);
}

Verdict Fits(const Region& r, const void* p) {
  const Shape shape(r);
  if (shape.row.kernel == 0 || shape.column.kernel == 0)
    return Verdict::No("the window's extent is not known");
  return WorkgroupFits(Parameters<ConvDirect>(p).workgroup, r.caps());
}

// The tile of one invocation.
class Tile {
 public:
  Tile(Emission& m, const Shape& shape, const ConvDirect& t) : m_(m), shape_(shape), t_(t) {}
  Dim count() const;  // of tiles
  void Run(const Dim& at);

 private:
  TiledAxis channels() const { return {shape_.group_outputs, t_.channels}; }
  TiledAxis rows() const { return {shape_.rows, t_.rows}; }
  TiledAxis columns() const { return {shape_.columns, t_.columns}; }
  Dims Grid() const {
    return {shape_.batch, shape_.op.groups, channels().count(), rows().count(), columns().count()};
  }
  void Place(const Dim& at);
  Vals Start();
  Vals Accumulate(const Dim& c, const Dim& tap_row, const Dim& tap_column, Vals sums);
  Val Input(const Dim& c, const Dim& row, const Dim& column);
  void Finish(const Vals& sums);
  void FinishRow(size_t channel, size_t row, std::span<const Val> sums);

  Emission& m_;
  const Shape& shape_;
  const ConvDirect& t_;
  Dim n_, group_;
  std::vector<Position> channel_, row_, column_;  // channels of the whole result
};

Dim Tile::count() const { return ir::Product(Grid()); }

void Tile::Place(const Dim& at) {
  const Dims tile = Unflatten(at, Grid());
  n_ = tile[0], group_ = tile[1];
  for (int64_t i = 0; i < t_.channels; ++i) {
    channel_.push_back(channels().At(m_, tile[2], i));
    channel_.back().at = group_ * shape_.group_outputs + channel_.back().at;
  }
  for (int64_t i = 0; i < t_.rows; ++i) row_.push_back(rows().At(m_, tile[3], i));
  for (int64_t i = 0; i < t_.columns; ++i) column_.push_back(columns().At(m_, tile[4], i));
}

Vals Tile::Start() {
  const Type type = AccumulatorOf(m_.region.anchor_output().dtype());
  Vals sums;
  for (const Position& channel : channel_) {
    Val first = shape_.biased ? m_.e.At(2, {channel.at}) : m_.b.Literal(type, 0);
    sums.insert(sums.end(), row_.size() * column_.size(), first);
  }
  return sums;
}

Val Tile::Input(const Dim& c, const Dim& row, const Dim& column) {
  const Position p = Guard(m_, row, shape_.row.extent), q = Guard(m_, column, shape_.column.extent);
  Val v = m_.e.At(0, {n_, group_ * shape_.group_inputs + c, p.at, q.at});
  return Where(Both(p.inside, q.inside), v, 0);
}

Vals Tile::Accumulate(const Dim& c, const Dim& tap_row, const Dim& tap_column, Vals sums) {
  Vals x;
  for (const Position& row : row_)
    for (const Position& column : column_)
      x.push_back(
          Input(c, shape_.row.At(row.at, tap_row), shape_.column.At(column.at, tap_column)));
  for (size_t o = 0; o < channel_.size(); ++o) {
    Val w = m_.e.At(1, {channel_[o].at, c, tap_row, tap_column});
    for (size_t i = 0; i < x.size(); ++i) {
      Val& sum = sums[o * x.size() + i];
      sum = fma(w, x[i], sum);
    }
  }
  return sums;
}

void Tile::FinishRow(size_t channel, size_t row, std::span<const Val> sums) {
  const int lanes = columns().exact() ? LanesFor(t_.columns) : 1;
  for (size_t j = 0; j < sums.size(); j += static_cast<size_t>(lanes)) {
    Dims index{n_, channel_[channel].at, row_[row].at, column_[j].at};
    if (lanes > 1) {
      index[3] = index[3] + m_.e.Lane(lanes);
      const auto part = sums.subspan(j, static_cast<size_t>(lanes));
      m_.e.Finish(index, m_.b.Pack(sums[j].type().Lanes(lanes), part), lanes);
    } else if (column_[j].inside) {
      m_.b.If(column_[j].inside, [&] { m_.e.Finish(index, sums[j]); });
    } else {
      m_.e.Finish(index, sums[j]);
    }
  }
}

void Tile::Finish(const Vals& sums) {
  auto row = std::span(sums);
  for (size_t o = 0; o < channel_.size(); ++o)
    for (size_t i = 0; i < row_.size(); ++i, row = row.subspan(column_.size())) {
      const auto part = row.first(column_.size());
      if (Val inside = Both(channel_[o].inside, row_[i].inside))
        m_.b.If(inside, [&] { FinishRow(o, i, part); });
      else
        FinishRow(o, i, part);
    }
}

void Tile::Run(const Dim& at) {
  Place(at);
  Builder& b = m_.b;
  auto channel = [&](Val i, Vals carried) {
    const Dim c = m_.e.Coordinate(i, LastIndex(shape_.group_inputs));
    return ForTaps(m_, shape_.row.kernel, shape_.column.kernel, std::move(carried),
                   [&](const Dim& r, const Dim& s, Vals sums) {
                     return Accumulate(c, r, s, std::move(sums));
                   });
  };
  Finish(b.For({b.Int(0), b.Scalar(shape_.group_inputs), b.Int(1)}, Start(), channel));
}

absl::StatusOr<Program> Emit(const Region& r, const void* p) {
  const auto& t = Parameters<ConvDirect>(p);
  const Shape shape(r);
  Program out{.kernel = fmt::format("conv_direct_{}x{}x{}", t.channels, t.rows, t.columns),
              .launches = {},
              .scratch_bytes = {}};
  Emission m(r, out.kernel, {static_cast<uint32_t>(t.workgroup), 1, 1});
  Tile tile(m, shape, t);
  m.Guarded(m.Invocations(tile.count()), [&](const Dim& at) { tile.Run(at); });
  out.launches.push_back(std::move(m).Take());
  return out;
}

}  // namespace

const Schedule kConvDirect{.name = "conv_direct",
                           .parameters = ConvDirect::kFields,
                           .takes = &Takes,
                           .defaults = &Defaults,
                           .fits = &Fits,
                           .emit = &Emit};

}  // namespace forge::codegen
