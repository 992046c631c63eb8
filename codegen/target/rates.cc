// SPDX-License-Identifier: Apache-2.0
#include "codegen/target/rates.h"

#include <algorithm>
#include <cmath>

namespace forge::codegen {
namespace {

double TotalBytes(ir::TypeSpan types) {
  double sum = 0;
  for (const ir::Type& t : types) {
    if (!t) continue;
    const absl::StatusOr<ir::Dim> bytes = t.bytes();
    if (bytes.ok() && bytes->is_constant()) sum += static_cast<double>(bytes->constant());
  }
  return sum;
}

double FlopsOf(const ir::Candidate& node) {
  const ir::Dim flops = node.op.Cost(node.in).flops;
  return flops.is_constant() ? static_cast<double>(flops.constant()) : 0;
}

}  // namespace

double Rates::Seconds(const ir::Candidate& node) const {
  return std::max(FlopsOf(node) / flops, (TotalBytes(node.in) + TotalBytes(node.out)) / bytes);
}

int64_t Rates::FlopsPerByte() const {
  return int64_t{1} << std::clamp(std::lround(std::log2(flops / bytes)), 0L, 30L);
}

}  // namespace forge::codegen
