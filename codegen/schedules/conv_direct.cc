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

std::shared_ptr<void> Defaults(const Region& r) {
  const ConvShape shape(r);
  ConvDirect t;
  t.channels = TileSize(shape.group_outputs, r.caps().few_registers() ? 4 : 8);
  t.columns = TileSize(shape.columns, 4);
  return Boxed(t);
}

Verdict Fits(const Region& r, const void* p) {
  if (!ConvShape(r).known_window()) return Verdict::No("the window's extent is not known");
  return WorkgroupFits(Parameters<ConvDirect>(p).workgroup, r.caps());
}

absl::StatusOr<Program> Emit(const Region& r, const void* p) {
  const auto& t = Parameters<ConvDirect>(p);
  Program out{.kernel = fmt::format("conv_direct_{}x{}x{}", t.channels, t.rows, t.columns),
              .launches = {},
              .scratch_bytes = {}};
  out.launches.push_back(
      EmitConvTiles(r, {t.channels, t.rows, t.columns}, t.workgroup, out.kernel));
  return out;
}

}  // namespace

const Schedule kConvDirect{.name = "conv_direct",
                           .parameters = ConvDirect::kFields,
                           .takes = &Takes,
                           .defaults = &Defaults,
                           .fits = &Fits,
                           .emit = &Emit};

}  // namespace forge::codegen
