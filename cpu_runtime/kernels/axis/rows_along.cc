// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/axis/rows_along.h"

#include "ir/op/axes.h"

namespace forge::cpu {

bool IsRowMajor(const View& v) { return v.strides == DenseView(v.dtype, v.shape).strides; }

absl::StatusOr<RowsAlong> RowsAlongOf(const View& x, std::optional<int64_t> axis) {
  if (!IsRowMajor(x)) return Unimplemented("the axes of an operand are permuted");
  if (!axis) return RowsAlong{1, x.elements(), 1};
  FORGE_ASSIGN_OR_RETURN(const int64_t along,
                         ir::NormalAxis(*axis, static_cast<int64_t>(x.shape.size())));
  RowsAlong rows{1, x.shape[static_cast<size_t>(along)], 1};
  for (size_t a = 0; a < x.shape.size(); ++a) {
    if (static_cast<int64_t>(a) < along) rows.outer *= x.shape[a];
    if (static_cast<int64_t>(a) > along) rows.inner *= x.shape[a];
  }
  return rows;
}

}  // namespace forge::cpu
