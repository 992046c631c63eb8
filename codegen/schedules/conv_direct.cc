// SPDX-License-Identifier: Apache-2.0
// Direct convolution: an invocation computes a register tile of output channels and columns. What
// fits every device and any shape.
#include "codegen/schedules/conv_tile.h"
#include "codegen/schedules/list.h"

namespace forge::codegen {
namespace {

struct ConvDirect {
  int64_t workgroup = 64;
  int64_t channels = 1, rows = 1, columns = 1;  // of the output, to an invocation
  static constexpr Field kFields[] = {
      FieldOf<&ConvDirect::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&ConvDirect::channels>("channels", "Output channels to an invocation.", "1|2|4|8"),
      FieldOf<&ConvDirect::rows>("rows", "Output rows to an invocation.", "1|2"),
      FieldOf<&ConvDirect::columns>("columns", "Output columns to an invocation.", "1|2|4|8")};
};

bool Takes(const Region& r) { return r.AnchorAs<ir::Conv2d>() != nullptr; }

ConvDirect Defaults(const Region& r) {
  const ConvShape shape(r);
  ConvDirect t;
  t.channels = TileSize(shape.group_outputs, r.caps().few_registers() ? 4 : 8);
  t.columns = TileSize(shape.columns, 4);
  return t;
}

Verdict Fits(const Region& r, const ConvDirect& t) {
  if (!ConvShape(r).known_window()) return Verdict::No("the window's extent is not known");
  return WorkgroupFits(t.workgroup, r.caps());
}

Program Emit(const Region& r, const ConvDirect& t) {
  return OneLaunch(
      EmitConvTiles(r, {t.channels, t.rows, t.columns}, t.workgroup,
                    fmt::format("conv_direct_{}x{}x{}", t.channels, t.rows, t.columns)));
}

}  // namespace

const Schedule kConvDirect = ScheduleOf<ConvDirect, Takes, Defaults, Fits, Emit>("conv_direct");

}  // namespace forge::codegen
