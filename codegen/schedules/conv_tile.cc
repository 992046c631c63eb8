// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/conv_tile.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

constexpr int kVector = 4;

WindowAxis AxisOf(const Region& r, size_t i) {
  const auto& op = *r.AnchorAs<ir::Conv2d>();
  const Dim& taps = r.anchor_inputs()[1].shape()[2 + i];
  return {.extent = r.anchor_inputs()[0].shape()[2 + i],
          .kernel = taps.is_constant() ? taps.constant() : 0,
          .stride = op.strides[i],
          .dilation = op.dilations[i],
          .padding = op.padding[i]};
}

}  // namespace

ConvShape::ConvShape(const Region& r)
    : op(*r.AnchorAs<ir::Conv2d>()),
      batch(r.anchor_output().shape()[0]),
      channels(r.anchor_output().shape()[1]),
      rows(r.anchor_output().shape()[2]),
      columns(r.anchor_output().shape()[3]),
      group_outputs(FloorDiv(channels, op.groups)),
      group_inputs(r.anchor_inputs()[1].shape()[1]),
      biased(r.anchor_inputs().size() > 2 && r.anchor_inputs()[2]),
      row(AxisOf(r, 0)),
      column(AxisOf(r, 1)) {}

ConvTile::ConvTile(Emission& m, const ConvShape& shape, const ConvTileSize& size)
    : m_(m), shape_(shape), size_(size), vectors_(LoadsVectors()) {}

Dims ConvTile::Grid() const {
  return {shape_.batch, shape_.op.groups, channels().count(), rows().count(), columns().count()};
}

bool ConvTile::LoadsVectors() const {
  const Dim& width = shape_.column.extent;
  if (size_.columns % kVector != 0 || !columns().exact() || width.divisor() % kVector != 0)
    return false;
  const auto some = std::make_shared<ir::Symbol>(ir::Symbol{.name = "some", .min = 0, .max = 0});
  const auto lane =
      std::make_shared<ir::Symbol>(ir::Symbol{.name = "lane", .min = 0, .max = kVector - 1});
  return m_.region.Contiguous(0, {Dim(some), Dim(some), Dim(some), Dim(lane)}, lane, kVector);
}

void ConvTile::Place(const Dim& at) {
  const Dims tile = Unflatten(at, Grid());
  n_ = tile[0], group_ = tile[1], first_column_ = tile[4] * size_.columns;
  for (int64_t i = 0; i < size_.channels; ++i) {
    channel_.push_back(channels().At(m_, tile[2], i));
    channel_.back().at = group_ * shape_.group_outputs + channel_.back().at;
  }
  for (int64_t i = 0; i < size_.rows; ++i) row_.push_back(rows().At(m_, tile[3], i));
  for (int64_t i = 0; i < size_.columns; ++i) column_.push_back(columns().At(m_, tile[4], i));
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
Val ConvTile::InputFromVector(const Tap& tap, const Position& row, size_t column) {
  const WindowAxis& axis = shape_.column;
  const int64_t offset = static_cast<int64_t>(column) * axis.stride +
                         tap.column.constant() * axis.dilation - axis.padding;
  const int64_t component = ((offset % kVector) + kVector) % kVector;
  const Position first = Guard(m_, first_column_ * axis.stride + (offset - component), axis.extent);
  const Dims index{n_, group_ * shape_.group_inputs + tap.channel, row.at,
                   first.at + m_.e.Lane(kVector)};
  Val v = m_.b.Extract(m_.e.At(0, index, kVector), static_cast<int>(component));
  return Where(Both(row.inside, first.inside), v, 0);
}

Val ConvTile::Input(const Tap& tap, size_t row, size_t column) {
  const Position p = Guard(m_, shape_.row.At(row_[row].at, tap.row), shape_.row.extent);
  if (vectors_ && tap.column.is_constant()) return InputFromVector(tap, p, column);
  const Position q =
      Guard(m_, shape_.column.At(column_[column].at, tap.column), shape_.column.extent);
  Val v = m_.e.At(0, {n_, group_ * shape_.group_inputs + tap.channel, p.at, q.at});
  return Where(Both(p.inside, q.inside), v, 0);
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

void ConvTile::FinishRow(size_t channel, size_t row, std::span<const Val> sums) {
  const int lanes = columns().exact() ? LanesFor(size_.columns) : 1;
  for (size_t j = 0; j < sums.size(); j += static_cast<size_t>(lanes)) {
    Dims index{n_, channel_[channel].at, row_[row].at, column_[j].at};
    if (lanes > 1) {
      index[3] = index[3] + m_.e.Lane(lanes);
      const auto part = sums.subspan(j, static_cast<size_t>(lanes));
      m_.e.Finish(index, m_.b.Pack(sums[j].type().Lanes(lanes), part), lanes);
    } else {
      IfInside(m_.b, column_[j].inside, [&] { m_.e.Finish(index, sums[j]); });
    }
  }
}

void ConvTile::Finish(const Vals& sums) {
  auto row = std::span(sums);
  for (size_t o = 0; o < channel_.size(); ++o)
    for (size_t i = 0; i < row_.size(); ++i, row = row.subspan(column_.size())) {
      const auto part = row.first(column_.size());
      IfInside(m_.b, Both(channel_[o].inside, row_[i].inside), [&] { FinishRow(o, i, part); });
    }
}

void ConvTile::Run(const Dim& at) {
  Place(at);
  Builder& b = m_.b;
  auto channel = [&](Val i, Vals carried) {
    const Dim c = m_.e.Coordinate(i, LastIndex(shape_.group_inputs));
    return ForTaps(m_, shape_.row.kernel, shape_.column.kernel, std::move(carried),
                   [&](const Dim& r, const Dim& s, Vals sums) {
                     return Accumulate({c, r, s}, std::move(sums));
                   });
  };
  Finish(b.For({b.Int(0), b.Scalar(shape_.group_inputs), b.Int(1)}, Start(), channel));
}

Launch EmitConvTiles(const Region& r, const ConvTileSize& size, int64_t workgroup,
                     const std::string& name) {
  const ConvShape shape(r);
  Emission m(r, name, {static_cast<uint32_t>(workgroup), 1, 1});
  ConvTile tile(m, shape, size);
  m.Guarded(m.Invocations(tile.count()), [&](const Dim& at) { tile.Run(at); });
  return std::move(m).Take();
}

}  // namespace forge::codegen
