// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/window.h"

#include <algorithm>

#include "ir/ops/conv2d.h"
#include "ir/ops/conv_transpose2d.h"
#include "ir/ops/pool2d.h"

namespace forge::codegen {
namespace {

// More taps than this are looped over, or kernels of large windows grow without bound; rows of
// taps also where a first run waits for the driver's compiler, and loops cost little.
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
  using Step = absl::FunctionRef<Vals(const ir::Dim& tap, Vals carried)>;
  const auto each = [&](int64_t taps, bool looped, Vals before, Step step) {
    if (looped && taps > 1)
      return m.b.For(
          {m.b.Int(0), m.b.Int(taps), m.b.Int(1)}, std::move(before),
          [&](Val i, Vals inner) { return step(m.e.Coordinate(i, taps - 1), std::move(inner)); });
    for (int64_t i = 0; i < taps; ++i) before = step(i, std::move(before));
    return before;
  };
  const bool many = rows * columns > kUnrolledTaps;
  return each(rows, many || m.region.caps().runs_on_cpu, std::move(carried),
              [&](const ir::Dim& row, Vals outer) {
                return each(columns, many, std::move(outer),
                            [&](const ir::Dim& column, Vals inner) {
                              return body(row, column, std::move(inner));
                            });
              });
}

}  // namespace forge::codegen
