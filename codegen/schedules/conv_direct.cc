// SPDX-License-Identifier: Apache-2.0
// Direct convolution: an invocation computes a register tile of output channels, rows and columns.
// Loads that the taps of a tile share are made once, since equal instructions are one.
#include "ir/ops/conv2d.h"

#include "codegen/schedules/list.h"
#include "codegen/schedules/window.h"

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
  WindowAxis row, column;

  explicit Shape(const Region& r)
      : op(*r.AnchorAs<ir::Conv2d>()),
        batch(r.anchor_output().shape()[0]),
        channels(r.anchor_output().shape()[1]),
        rows(r.anchor_output().shape()[2]),
        columns(r.anchor_output().shape()[3]),
        group_outputs(FloorDiv(channels, op.groups)),
        group_inputs(r.anchor_inputs()[1].shape()[1]),
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
  t.channels = TileOf(shape.group_outputs, 8);
  t.columns = TileOf(shape.columns, t.channels > 1 ? 4 : 8);
  t.rows = t.channels * t.columns <= 4 ? TileOf(shape.rows, 2) : 1;
  return Boxed(t);
}

Verdict Fits(const Region& r, const void* p) {
  const auto& t = Parameters<ConvDirect>(p);
  const Shape shape(r);
  if (shape.row.kernel == 0 || shape.column.kernel == 0)
    return Verdict::No("the window's extent is not known");
  if (shape.group_outputs.divisor() % t.channels != 0 || shape.rows.divisor() % t.rows != 0 ||
      shape.columns.divisor() % t.columns != 0)
    return Verdict::No("the tile does not divide the result");
  return WorkgroupFits(t.workgroup, r.caps());
}

// The tile of one invocation.
class Tile {
 public:
  Tile(Emission& m, const Shape& shape, const ConvDirect& t, const Dim& at);
  void Run();

 private:
  Vals Start();
  Vals Accumulate(const Dim& c, const Dim& tap_row, const Dim& tap_column, Vals sums);
  Val Input(const Dim& c, const Dim& row, const Dim& column);

  Emission& m_;
  const Shape& shape_;
  const ConvDirect& t_;
  Dim n_, group_, channel_, row_, column_;  // the tile's first output
  Type type_;
};

Tile::Tile(Emission& m, const Shape& shape, const ConvDirect& t, const Dim& at)
    : m_(m), shape_(shape), t_(t), type_(AccumulatorOf(m.region.anchor_output().dtype())) {
  const Dims tile = Unflatten(
      at, {shape.batch, shape.op.groups, FloorDiv(shape.group_outputs, t.channels),
           FloorDiv(shape.rows, t.rows), FloorDiv(shape.columns, t.columns)});
  n_ = tile[0], group_ = tile[1];
  channel_ = group_ * shape.group_outputs + tile[2] * t.channels;
  row_ = tile[3] * t.rows, column_ = tile[4] * t.columns;
}

Vals Tile::Start() {
  Vals sums;
  const bool biased = m_.region.anchor_inputs().size() > 2 && m_.region.anchor_inputs()[2];
  for (int64_t i = 0; i < t_.channels; ++i) {
    Val first = biased ? m_.e.At(2, {channel_ + i}) : m_.b.Literal(type_, 0);
    sums.insert(sums.end(), static_cast<size_t>(t_.rows * t_.columns), first);
  }
  return sums;
}

Val Tile::Input(const Dim& c, const Dim& row, const Dim& column) {
  const Guarded p = Guard(m_, row, shape_.row.extent), q = Guard(m_, column, shape_.column.extent);
  Val v = m_.e.At(0, {n_, group_ * shape_.group_inputs + c, p.at, q.at});
  return Where(Both(p.inside, q.inside), v, 0);
}

Vals Tile::Accumulate(const Dim& c, const Dim& tap_row, const Dim& tap_column, Vals sums) {
  Vals x;
  for (int64_t i = 0; i < t_.rows; ++i)
    for (int64_t j = 0; j < t_.columns; ++j)
      x.push_back(Input(c, shape_.row.At(row_ + i, tap_row),
                        shape_.column.At(column_ + j, tap_column)));
  for (int64_t o = 0; o < t_.channels; ++o) {
    Val w = m_.e.At(1, {channel_ + o, c, tap_row, tap_column});
    for (size_t i = 0; i < x.size(); ++i) {
      Val& sum = sums[static_cast<size_t>(o) * x.size() + i];
      sum = fma(w, x[i], sum);
    }
  }
  return sums;
}

void Tile::Run() {
  Builder& b = m_.b;
  Vals sums = b.For({b.Int(0), b.Scalar(shape_.group_inputs), b.Int(1)}, Start(),
                    [&](Val i, Vals carried) {
                      const Dim c = m_.e.Coordinate(i, LastIndex(shape_.group_inputs));
                      return ForTaps(m_, shape_.row.kernel, shape_.column.kernel,
                                     std::move(carried),
                                     [&](const Dim& r, const Dim& s, Vals inner) {
                                       return Accumulate(c, r, s, std::move(inner));
                                     });
                    });
  const int lanes = t_.columns % 4 == 0 ? 4 : t_.columns % 2 == 0 ? 2 : 1;
  size_t at = 0;
  for (int64_t o = 0; o < t_.channels; ++o)
    for (int64_t i = 0; i < t_.rows; ++i)
      for (int64_t j = 0; j < t_.columns; j += lanes, at += static_cast<size_t>(lanes)) {
        Val v = lanes == 1 ? sums[at]
                           : b.Pack(type_.Lanes(lanes),
                                    std::span(sums).subspan(at, static_cast<size_t>(lanes)));
        m_.e.Finish({n_, channel_ + o, row_ + i, column_ + j + m_.e.Lane(lanes)}, v, lanes);
      }
}

absl::StatusOr<Program> Emit(const Region& r, const void* p) {
  const auto& t = Parameters<ConvDirect>(p);
  const Shape shape(r);
  Program out{.kernel = fmt::format("conv_direct_{}x{}x{}", t.channels, t.rows, t.columns),
              .launches = {},
              .scratch_bytes = {}};
  Emission m(r, out.kernel, {static_cast<uint32_t>(t.workgroup), 1, 1});
  const Dim tiles =
      FloorDiv(r.anchor_output().elements(), t.channels * t.rows * t.columns);
  m.Guarded(m.Invocations(tiles), [&](const Dim& at) { Tile(m, shape, t, at).Run(); });
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
