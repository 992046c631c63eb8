// SPDX-License-Identifier: Apache-2.0
// Pooling: one output to an invocation.
#include "codegen/schedules/window.h"
#include "ir/ops/pool2d.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

struct Pool {
  int64_t workgroup = 64;
  static constexpr Field kFields[] = {
      FieldOf<&Pool::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128")};
};

bool Takes(const Region& r) { return r.AnchorAs<ir::Pool2d>() != nullptr; }
Pool Defaults(const Region&) { return Pool{}; }
Verdict Fits(const Region& r, const Pool& t) { return WorkgroupFits(t.workgroup, r.caps()); }

// How many taps of the window at `out` lie in [-before, extent + after).
Val Covered(Emission& m, const WindowAxis& axis, const Dim& out, int64_t before, int64_t after) {
  Val n = m.b.Int(0);
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const Position g = Guard(m, axis.At(out, tap) + before, axis.extent + before + after);
    n = n + Where(g.inside, m.b.Int(1), 0);
  }
  return n;
}

Val Window(Emission& m, const Dims& index) {
  const auto& op = *m.region.AnchorAs<ir::Pool2d>();
  const Dims& shape = m.region.anchor_inputs()[0].shape();
  const WindowAxis row = AxisOf(op, 0, shape[2], op.kernel[0]);
  const WindowAxis column = AxisOf(op, 1, shape[3], op.kernel[1]);
  const bool largest = op.kind == ir::PoolKind::kMax;
  const double start = largest ? -std::numeric_limits<double>::infinity() : 0;
  const Type type = AccumulatorOf(m.region.anchor_output().dtype());
  Val all =
      ForTaps(m, row.kernel, column.kernel, {m.b.Literal(type, start)},
              [&](const Dim& r, const Dim& s, Vals carried) {
                const Dims place{index[0], index[1], row.At(index[2], r), column.At(index[3], s)};
                const Val x = LoadPadded(m, place, start);
                return Vals{largest ? max(carried[0], x) : carried[0] + x};
              })[0];
  if (largest) return all;
  const auto& pad = op.padding;
  const bool padded = op.count_include_pad;
  Val rows = Covered(m, row, index[2], padded ? pad[0] : 0, padded ? pad[2] : 0);
  Val columns = Covered(m, column, index[3], padded ? pad[1] : 0, padded ? pad[3] : 0);
  Val n = rows * columns;
  return select(n == 0, m.b.Literal(type, 0), all / convert(max(n, 1), type.elem));
}

Program Emit(const Region& r, const Pool& t) {
  return OneLaunch(
      ForPlacesApart(r, "pool2d", t.workgroup, r.anchor_output().shape(),
                     [](Emission& m, const Dims& index) { m.e.Finish(index, Window(m, index)); }));
}

}  // namespace

const Schedule kPool = ScheduleOf<Pool, Takes, Defaults, Fits, Emit>("pool2d");

}  // namespace forge::codegen
