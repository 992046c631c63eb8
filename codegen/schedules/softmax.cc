// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/softmax.h"

#include "codegen/schedules/rows.h"

namespace forge::codegen {
namespace {

std::vector<int64_t> Axes(const Region& r) { return {r.AnchorAs<ir::Softmax>()->axis}; }

void Emit(Row& row) {
  auto [top, sum] = row.SumExponentials();
  if (row.op<ir::Softmax>().masked_rows_zero) sum = select(sum == 0.0, 1.0, sum);
  row.Store([top = top, sum = sum](Val x, Row::Operands) { return exp(x - top) / sum; });
}

constexpr RowFormula kFormula{"softmax", &Axes, &Emit};

}  // namespace

const Schedule kSoftmaxSerial =
    RowSchedule<Scope::kInvocation, ir::Softmax, kFormula>("softmax_serial");
const Schedule kSoftmaxSubgroup =
    RowSchedule<Scope::kSubgroup, ir::Softmax, kFormula>("softmax_subgroup");
const Schedule kSoftmaxRows = RowSchedule<Scope::kWorkgroup, ir::Softmax, kFormula>("softmax_rows");

}  // namespace forge::codegen
