// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/gemm.h"

#include "ir/ops/conv2d.h"
#include "ir/ops/matmul.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// [batch axes ..., i, j] of an operand whose batch axes broadcast to those of the result.
Dims MatrixIndex(const Dims& batch, const ir::Type& operand, const Dim& i, const Dim& j) {
  const Dims outer(operand.shape().begin(), operand.shape().end() - 2);
  Dims index = BroadcastIndex(batch, outer);
  index.push_back(i);
  index.push_back(j);
  return index;
}

// The widest vector that At loads at once along the axis that `index` gives a lane.
int LanesAlong(const Region& r, int operand, absl::FunctionRef<Dims(Elements&, int)> index) {
  Emission probe(r, "probe", {1, 1, 1});
  for (int lanes : {4, 2})
    if (probe.e.Contiguous(operand, index(probe.e, lanes), lanes)) return lanes;
  return 1;
}

// A coordinate of some element of an axis, a multiple of `divisor`, of which nothing else is known.
Dim Any(Elements&, const Dim& extent, int64_t divisor) {
  return Dim(std::make_shared<ir::Symbol>(
      ir::Symbol{.name = "any", .min = 0, .max = LastIndex(extent), .divisor = divisor}));
}

}  // namespace

std::optional<Gemm> GemmOf(const Region& r);

}  // namespace forge::codegen
