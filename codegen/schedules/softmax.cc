// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/softmax.h"

#include "codegen/schedules/rows.h"
#include "ir/ops/axes.h"

namespace forge::codegen {
namespace {

RowSpace Space(const Region& r) {
  const auto axis = ir::NormalAxis(r.AnchorAs<ir::Softmax>()->axis, r.anchor_output().rank());
  FORGE_CHECK(axis.ok());
  return {r, static_cast<size_t>(*axis), 1};
}

void Emit(Row& row) {
  auto [top, sum] = row.SumExponentials();
  if (row.op<ir::Softmax>().masked_rows_zero) sum = select(sum == 0.0, 1.0, sum);
  row.Store([top = top, sum = sum](Val x, Row::Operands) { return exp(x - top) / sum; });
}

constexpr RowFormula kFormula{"softmax", &Space, &Emit};

}  // namespace

const Schedule kSoftmaxSerial = RowSchedule<SerialRows, ir::Softmax, kFormula>("softmax_serial");
const Schedule kSoftmaxSubgroup =
    RowSchedule<SubgroupRows, ir::Softmax, kFormula>("softmax_subgroup");
const Schedule kSoftmaxRows = RowSchedule<WorkgroupRows, ir::Softmax, kFormula>("softmax_rows");

}  // namespace forge::codegen
