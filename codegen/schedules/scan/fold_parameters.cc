// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/scan/fold_parameters.h"

namespace forge::codegen {

Verdict FoldSplit::Fits(int64_t parts) const {
  if (parts == 1) return Verdict::Yes();
  SplitOperands bound(region);
  if (reads_twice) bound.after = region.bindings();
  return ScratchFits(region, FoldScratch(axis, parts).Bytes(), bound);
}

int64_t FoldSplit::DefaultParts(int64_t pieces, int64_t steps) const {
  const int64_t parts = rule.PartsOf(pieces, steps);
  return Fits(parts) ? parts : 1;
}

SplitRule SplitFoldColumns(const Caps& caps, const SplitRule& gpu) {
  if (!caps.runs_on_cpu) return gpu;
  return {.few = 32 * caps.cores,
          .enough = 64 * caps.cores,
          .shortest = 1 << 12,
          .least = 128,
          .most = 512};
}

FoldColumns DefaultFoldColumns(const FoldSplit& split) {
  const RowSpace& space = split.axis.space;
  const FoldTile tile = DefaultFoldTile(space);
  FoldColumns t{.across = tile.across, .along = tile.along};
  if (split.region.caps().runs_on_cpu) t.workgroup = 8;
  t.parts = split.DefaultParts(space.rows().max() / t.across, space.length().min() / t.along);
  return t;
}

Verdict FoldColumnsFit(const FoldSplit& split, const FoldColumns& t) {
  const RowSpace& space = split.axis.space;
  if (Verdict v = FoldTileFits(space, t.tile()); !v) return v;
  if (t.parts > 1 && space.length().max() < t.parts * t.along) return Verdict::No("rows are short");
  if (Verdict v = split.Fits(t.parts); !v) return v;
  return WorkgroupFits(t.workgroup, split.region.caps());
}

FoldRows DefaultFoldRows(const FoldSplit& split) {
  const RowSpace& space = split.axis.space;
  return {.along = DefaultFoldTile(space).along,
          .parts = split.DefaultParts(space.rows().max(), space.length().min())};
}

Verdict FoldRowsFit(const FoldSplit& split, const FoldRows& t, int64_t shortest) {
  const RowSpace& space = split.axis.space;
  const Caps& caps = split.region.caps();
  if (caps.runs_on_cpu) return Verdict::No("barriers are dear");
  if (space.length().max() < shortest) return Verdict::No("rows are short");
  if (t.parts > 1 && space.length().max() < t.parts * t.along * t.workgroup)
    return Verdict::No("parts of rows are short");
  if (Verdict v = FoldTileFits(space, t.tile()); !v) return v;
  if (Verdict v = split.Fits(t.parts); !v) return v;
  return WorkgroupFits(t.workgroup, caps, WorkgroupFold::Shared(t.workgroup, split.axis.rule));
}

}  // namespace forge::codegen
