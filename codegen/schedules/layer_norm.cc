// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/layer_norm.h"

#include "codegen/schedules/rows.h"

namespace forge::codegen {
namespace {

std::vector<int64_t> Axes(const Region& r) {
  const int64_t first = r.AnchorAs<ir::LayerNorm>()->axis;
  std::vector<int64_t> axes;
  for (int64_t a = first; a < (first < 0 ? 0 : r.anchor_output().rank()); ++a) axes.push_back(a);
  return axes;
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

constexpr RowFormula kFormula{"layer_norm", &Axes, &Emit};

}  // namespace

const Schedule kLayerNormSerial =
    RowSchedule<Scope::kInvocation, ir::LayerNorm, kFormula>("layer_norm_serial");
const Schedule kLayerNormSubgroup =
    RowSchedule<Scope::kSubgroup, ir::LayerNorm, kFormula>("layer_norm_subgroup");
const Schedule kLayerNormRows =
    RowSchedule<Scope::kWorkgroup, ir::LayerNorm, kFormula>("layer_norm_rows");

}  // namespace forge::codegen
