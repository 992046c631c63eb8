// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: an invocation slides its window over a tile of one channel's rows and
// columns, and loads what the windows share once.
#include "codegen/schedules/conv_tile.h"
#include "codegen/schedules/list.h"

namespace forge::codegen {
namespace {

struct ConvDepthwise {
  int64_t workgroup = 64;
  int64_t rows = 1, columns = 1;  // of the output, to an invocation
  static constexpr Field kFields[] = {
      FieldOf<&ConvDepthwise::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&ConvDepthwise::rows>("rows", "Output rows to an invocation.", "1|2|3|4"),
      FieldOf<&ConvDepthwise::columns>("columns", "Output columns to an invocation.",
                                       "1|2|4|8|16")};
};

bool Takes(const Region& r) {
  const auto* op = r.AnchorAs<ir::Conv2d>();
  return op != nullptr && op->groups > 1 && ConvShape(r).group_inputs == ir::Dim(1);
}

// The largest size up to `most` whose tiles are all whole, a multiple of `step` where there is one;
// what lies beyond an edge is tested at each load, which costs more than small tiles.
int64_t WholeTile(const ir::Dim& extent, int64_t most, int64_t step) {
  for (int64_t t = most / step * step; t >= step; t -= step)
    if (extent.divisor() % t == 0) return t;
  return step == 1 ? 1 : TileSize(extent, most);
}

// Large tiles share what windows load; GPUs have few registers for them, and lanes to fill when the
// result is small. On a CPU another row of outputs costs as much code as it saves loads, and code
// is what a first run waits for.
constexpr int64_t kManyOutputs = 1 << 14;
constexpr ConvTileSize kOnCpu = {1, 1, 16}, kOfMany = {1, 2, 8}, kOfFew = {1, 1, 4};

ConvDepthwise Defaults(const Region& r) {
  const ConvShape shape(r);
  const bool many = r.anchor_output().elements().max() >= kManyOutputs && !r.caps().few_registers();
  const ConvTileSize most = r.caps().runs_on_cpu ? kOnCpu : many ? kOfMany : kOfFew;
  return ConvDepthwise{.workgroup = r.caps().runs_on_cpu ? 32 : 64,
                       .rows = WholeTile(shape.rows, most.rows, 1),
                       .columns = WholeTile(shape.columns, most.columns, 4)};
}

Verdict Fits(const Region& r, const ConvDepthwise& t) {
  if (!ConvShape(r).known_window()) return Verdict::No("the window's extent is not known");
  return WorkgroupFits(t.workgroup, r.caps());
}

Program Emit(const Region& r, const ConvDepthwise& t) {
  return OneLaunch(EmitConvTiles(r, {1, t.rows, t.columns}, t.workgroup,
                                 fmt::format("conv_depthwise_{}x{}", t.rows, t.columns)));
}

}  // namespace

const Schedule kConvDepthwise =
    ScheduleOf<ConvDepthwise, Takes, Defaults, Fits, Emit>("conv_depthwise");

}  // namespace forge::codegen
