// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/layer_norm.h"

#include "codegen/schedules/rows.h"
#include "ir/ops/axes.h"

namespace forge::codegen {
namespace {

RowSpace Space(const Region& r) {
  const int rank = r.anchor_output().rank();
  const auto axis = ir::NormalAxis(r.AnchorAs<ir::LayerNorm>()->axis, rank);
  FORGE_CHECK(axis.ok());
  return {r, static_cast<size_t>(*axis), static_cast<size_t>(rank - *axis)};
}

void Emit(Row& row) {
  const auto [mean, variance] =
      row.op<ir::LayerNorm>().subtract_mean
          ? row.MeanAndVariance()
          : Row::Moments{row.Literal(0), row.Sum([](Val x) { return x * x; }) / row.length()};
  const Val deviation = sqrt(variance + row.op<ir::LayerNorm>().epsilon);
  const auto has = [&](size_t k) {
    return row.region().anchor_inputs().size() > k && row.region().anchor_inputs()[k];
  };
  row.Store([&, mean = mean](Val x, Row::Operands of) {
    Val y = (x - mean) / deviation;
    if (has(1)) y = y * of(1);
    if (has(2)) y = y + of(2);
    return y;
  });
}

constexpr RowFormula kFormula{"layer_norm", &Space, &Emit};

}  // namespace

const Schedule kLayerNormSerial =
    RowSchedule<SerialRows, ir::LayerNorm, kFormula>("layer_norm_serial");
const Schedule kLayerNormSubgroup =
    RowSchedule<SubgroupRows, ir::LayerNorm, kFormula>("layer_norm_subgroup");
const Schedule kLayerNormRows =
    RowSchedule<WorkgroupRows, ir::LayerNorm, kFormula>("layer_norm_rows");

}  // namespace forge::codegen
