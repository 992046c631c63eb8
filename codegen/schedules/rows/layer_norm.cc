// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/norm/layer_norm.h"

#include "codegen/schedules/rows/rows.h"

namespace forge::codegen {
namespace {

std::vector<int64_t> NormAxes(const Region& r) {
  const int64_t first = r.AnchorAs<ir::LayerNorm>()->axis;
  std::vector<int64_t> axes;
  for (int64_t a = first; a < (first < 0 ? 0 : r.anchor_output().rank()); ++a) axes.push_back(a);
  return axes;
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
  row.Store([&, mean = mean, deviation = deviation](Val x, Row::Operands of) {
    Val y = (x - mean) / deviation;
    if (row.region().has_input(1)) y = y * of(1);
    if (row.region().has_input(2)) y = y + of(2);
    return y;
  });
}

constexpr RowFormula kNorm{"layer_norm", &NormAxes, &EmitNorm};
constexpr RowFormula kStatistics{"layer_norm_statistics", &NormAxes, [](Row& row) {
                                   const auto [mean, deviation] = Of(row);
                                   row.Keep(std::array{mean, 1.0 / deviation});
                                 }};

}  // namespace

int64_t NormScratchBytes(const ir::Type& rows) {
  return 2 * ElementBytes({ComputeType(rows.dtype())});
}

void PrependNorm(const Region& r, Program& program) {
  const Region norm = r.OfNorm();
  const auto launch = [&] {
    for (const Scope by : {Scope::kSubgroup, Scope::kWorkgroup}) {
      const SharedRows rows{by, kStatistics, {norm, NormAxes(norm)}};
      const RowTiles t = DefaultRowTiles(norm, rows);
      if (RowTilesFit(norm, rows, t)) return EmitRows(norm, rows, t).launches[0];
    }
    const SharedRows rows{Scope::kInvocation, kStatistics, {norm, NormAxes(norm)}};
    return EmitRows(norm, rows, DefaultRowTiles(norm, rows)).launches[0];
  };
  program.launches.insert(program.launches.begin(), launch());
  program.scratch_bytes.insert(
      program.scratch_bytes.begin(),
      (RowSpace(norm, NormAxes(norm)).rows() * NormScratchBytes(norm.anchor_output())).max());
}

const Schedule kLayerNormSerial =
    RowSchedule<Scope::kInvocation, ir::LayerNorm, kNorm>("layer_norm_serial");
const Schedule kLayerNormSubgroup =
    RowSchedule<Scope::kSubgroup, ir::LayerNorm, kNorm>("layer_norm_subgroup");
const Schedule kLayerNormRows =
    RowSchedule<Scope::kWorkgroup, ir::LayerNorm, kNorm>("layer_norm_rows");

}  // namespace forge::codegen
