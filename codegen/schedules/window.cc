// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/window.h"

#include <algorithm>

#include "ir/ops/conv2d.h"
#include "ir/ops/conv_transpose2d.h"
#include "ir/ops/pool2d.h"

namespace forge::codegen {
namespace {

// More taps than this are looped over, or kernels of large windows grow without bound.
constexpr int64_t kUnrolledTaps = 32;

}  // namespace

bool ReadsWindows(const Region& r) {
  if (r.AnchorAs<ir::Conv2d>() == nullptr)
    return r.AnchorAs<ir::Pool2d>() != nullptr || r.AnchorAs<ir::ConvTranspose2d>() != nullptr;
  const ir::Dims& w = r.anchor_inputs()[1].shape();
  return !(w[2] == ir::Dim(1) && w[3] == ir::Dim(1));
}

bool ComputesForEachTap(const Region& r) {
  const auto& nodes = r.body().nodes();
  return ReadsWindows(r) && std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node& n) {
           return &n < r.anchor() && n.op.def().scalar != nullptr;
         });
}

Vals ForTaps(Emission& m, int64_t rows, int64_t columns, Vals carried, TapBody body) {
  if (rows * columns <= kUnrolledTaps) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t s = 0; s < columns; ++s) carried = body(r, s, std::move(carried));
    return carried;
  }
  Val zero = m.b.Int(0), one = m.b.Int(1);
  return m.b.For({zero, m.b.Int(rows), one}, std::move(carried), [&](Val r, Vals outer) {
    const ir::Dim row = m.e.Coordinate(r, rows - 1);
    return m.b.For({zero, m.b.Int(columns), one}, std::move(outer), [&](Val s, Vals inner) {
      return body(row, m.e.Coordinate(s, columns - 1), std::move(inner));
    });
  });
}

}  // namespace forge::codegen
