// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/window.h"

#include <algorithm>

#include "ir/ops/conv_transpose2d.h"
#include "ir/ops/pool2d.h"

namespace forge::codegen {
namespace {

// More taps than this are looped over, or kernels of large windows grow without bound; rows of
// taps also where a first run waits for the driver's compiler, and loops cost little.
constexpr int64_t kUnrolledTaps = 32;

WindowAxis ConvAxis(const Region& r, size_t i) {
  const ir::Dim& taps = r.anchor_inputs()[1].shape()[2 + i];
  return AxisOf(*r.AnchorAs<ir::Conv2d>(), i, r.anchor_inputs()[0].shape()[2 + i],
                taps.is_constant() ? taps.constant() : 0);
}

}  // namespace

ConvShape::ConvShape(const Region& r)
    : op(*r.AnchorAs<ir::Conv2d>()),
      batch(r.anchor_output().shape()[0]),
      channels(r.anchor_output().shape()[1]),
      rows(r.anchor_output().shape()[2]),
      columns(r.anchor_output().shape()[3]),
      group_outputs(FloorDiv(channels, op.groups)),
      group_inputs(r.anchor_inputs()[1].shape()[1]),
      biased(r.anchor_inputs().size() > 2 && r.anchor_inputs()[2]),
      row(ConvAxis(r, 0)),
      column(ConvAxis(r, 1)) {}

std::optional<ConvShape> ConvOf(const Region& r) {
  if (r.AnchorAs<ir::Conv2d>() == nullptr) return std::nullopt;
  return ConvShape(r);
}

Val LoadPadded(Emission& m, ir::Dims index, double outside) {
  const ir::Dims& shape = m.region.anchor_inputs()[0].shape();
  const Position row = Guard(m, index[2], shape[2]), column = Guard(m, index[3], shape[3]);
  index[2] = row.at, index[3] = column.at;
  const Val v = m.e.At(0, index);
  return Where(Both(row.inside, column.inside), v, outside);
}

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
    if (looped && taps > 1) return m.Loop(taps, std::move(before), step);
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
