// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/norm/layer_norm.h"

#include "codegen/schedules/rows/rows.h"
#include "ir/ops/norm/layer_norm_gradient.h"

namespace forge::codegen {
namespace {

template <class Op>
std::vector<int64_t> AxesOf(const Region& r) {
  return ir::AxesOfNorm(r.AnchorAs<Op>()->axis, r.anchor_output().rank());
}

struct Statistics {
  Val mean, deviation;
};
Statistics Of(Row& row) {
  const auto [mean, variance] =
      row.op<ir::LayerNorm>().subtract_mean
          ? row.MeanAndVariance()
          : Row::Moments{row.Literal(0), row.Sum([](Val x) { return x * x; }) / row.length()};
  return {mean, sqrt(variance + row.op<ir::LayerNorm>().epsilon)};
}

void EmitNorm(Row& row) {
  const auto [mean, deviation] = Of(row);
  if (row.op<ir::LayerNorm>().statistics) {
    row.StoreNumber(1, mean);
    row.StoreNumber(2, 1.0 / deviation);
  }
  row.Store([&, mean = mean, deviation = deviation](Row::Numbers x, Row::Operands of) {
    Val y = (x[0] - mean) / deviation;
    if (row.region().has_input(1)) y = y * of(1);
    if (row.region().has_input(2)) y = y + of(2);
    return y;
  });
}

constexpr RowFormula kNorm{"layer_norm", &AxesOf<ir::LayerNorm>, &EmitNorm};
constexpr RowFormula kStatistics{"layer_norm_statistics", &AxesOf<ir::LayerNorm>, [](Row& row) {
                                   const auto [mean, deviation] = Of(row);
                                   row.Keep(std::array{mean, 1.0 / deviation});
                                 }};

// The numbers of an element: dz and z.
Vals OfGradient(const Region& r, Row::Operands of) {
  using enum ir::LayerNormGradient::Operand;
  const Val dy = of(kDy), x = of(kX), z = r.has_input(kMean) ? x - of(kMean) : x;
  return {r.has_input(kGamma) ? dy * of(kGamma) : dy, z * of(kInverseDeviation)};
}

void EmitGradient(Row& row) {
  using enum ir::LayerNormGradient::Operand;
  const bool centred = row.region().has_input(kMean);
  Vals means = row.Sums(centred ? 2 : 1, [](Row::Numbers x) { return Vals{x[0] * x[1], x[0]}; });
  for (Val& m : means) m = m / row.length();
  row.Store([&](Row::Numbers x, Row::Operands of) {
    const Val off = centred ? x[0] - means[1] : x[0];
    return of(kInverseDeviation) * (off - x[1] * means[0]);
  });
}

// Sums over rows are reductions of their own.
bool HasNoColumns(const Region& r, const RowSpace&) {
  return !r.AnchorAs<ir::LayerNormGradient>()->columns;
}

constexpr RowFormula kGradient{.name = "layer_norm_gradient",
                               .axes = &AxesOf<ir::LayerNormGradient>,
                               .emit = &EmitGradient,
                               .numbers = 2,
                               .of_element = &OfGradient,
                               .takes = &HasNoColumns};

}  // namespace

int64_t NormScratchBytes(const ir::Type& rows) {
  return 2 * ElementBytes({ComputeType(rows.dtype())});
}

void PrependNorm(const Region& r, Program& program) {
  const Region norm = r.OfNorm();
  const auto launch = [&] {
    for (const Scope by : {Scope::kSubgroup, Scope::kWorkgroup}) {
      const SharedRows rows{by, kStatistics, {norm, AxesOf<ir::LayerNorm>(norm)}};
      const RowTiles t = DefaultRowTiles(norm, rows);
      if (RowTilesFit(norm, rows, t)) return EmitRows(norm, rows, t).launches[0];
    }
    const SharedRows rows{Scope::kInvocation, kStatistics, {norm, AxesOf<ir::LayerNorm>(norm)}};
    return EmitRows(norm, rows, DefaultRowTiles(norm, rows)).launches[0];
  };
  program.launches.insert(program.launches.begin(), launch());
  program.scratch_bytes.insert(
      program.scratch_bytes.begin(),
      (RowSpace(norm, AxesOf<ir::LayerNorm>(norm)).rows() * NormScratchBytes(norm.anchor_output()))
          .max());
}

const Schedule kLayerNormSerial =
    RowSchedule<Scope::kInvocation, ir::LayerNorm, kNorm>("layer_norm_serial");
const Schedule kLayerNormSubgroup =
    RowSchedule<Scope::kSubgroup, ir::LayerNorm, kNorm>("layer_norm_subgroup");
const Schedule kLayerNormRows =
    RowSchedule<Scope::kWorkgroup, ir::LayerNorm, kNorm>("layer_norm_rows");

const Schedule kLayerNormGradientSerial =
    RowSchedule<Scope::kInvocation, ir::LayerNormGradient, kGradient>("layer_norm_gradient_serial");
const Schedule kLayerNormGradientSubgroup =
    RowSchedule<Scope::kSubgroup, ir::LayerNormGradient, kGradient>("layer_norm_gradient_subgroup");
const Schedule kLayerNormGradientRows =
    RowSchedule<Scope::kWorkgroup, ir::LayerNormGradient, kGradient>("layer_norm_gradient_rows");

}  // namespace forge::codegen
