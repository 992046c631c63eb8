// SPDX-License-Identifier: Apache-2.0
// Splitting of work with too few pieces to fill a device: each piece is split into parts, their
// results go to scratch, and a second launch combines them.
#pragma once
#include "codegen/schedules/emission.h"

namespace forge::codegen {

// When splitting is faster. Vulkan does not report how many workgroups a device runs at once, and a
// second launch costs time, so these are defaults; --autotune tries other numbers of parts.
struct SplitRule {
  int64_t few;       // pieces: this many fill a device unsplit
  int64_t enough;    // parts of all pieces: more are not faster
  int64_t shortest;  // steps of a piece: shorter pieces take less time than a second launch
  int64_t least;     // steps of a part: shorter parts cost more to combine than they save
  int64_t most;      // parts of a piece
  // Returns the parts of each of `pieces` of `length` steps, a power of two; 1: do not split.
  int64_t PartsOf(int64_t pieces, int64_t length) const;
};
// Tiles of matrix products: a workgroup has many sums, so few workgroups fill a device.
inline constexpr SplitRule kSplitProducts{
    .few = 32, .enough = 32, .shortest = 0, .least = 128, .most = 8};
// Rows of attention, split along the keys: combining reads a row of values too, so parts are few.
inline constexpr SplitRule kSplitAttention{
    .few = 64, .enough = 256, .shortest = 0, .least = 128, .most = 64};
// Reductions with one invocation for each output, split along the reduced elements.
inline constexpr SplitRule kSplitOutputs{
    .few = 1 << 11, .enough = 1 << 14, .shortest = 1 << 12, .least = 128, .most = 512};
// Reductions with one workgroup for each row: long rows are split into up to 64 parts.
inline constexpr SplitRule kSplitRows{
    .few = 33, .enough = 1 << 12, .shortest = 1 << 18, .least = 1, .most = 64};
// Rows of softmax. The second launch reads all elements again. On CPUs the parts follow the cores.
inline constexpr SplitRule SplitSoftmax(const Caps& caps) {
  const int64_t enough = caps.runs_on_cpu ? caps.cores : 512;
  return {.few = caps.runs_on_cpu ? enough : enough / 8,
          .enough = enough,
          .shortest = 0,
          .least = 1 << 13,
          .most = 256};
}

// The suffix of a kernel's name that gives the number of parts.
std::string SplitText(int64_t parts);

// The operands that each launch binds: `before` for the operands of the anchor, `after` for its
// epilogue and results.
struct SplitOperands {
  explicit SplitOperands(const Region& r);
  int64_t before, after;
};
inline constexpr int64_t kMostScratchBytes = int64_t{64} << 20;
// Whether `bytes` of scratch are within the limit and can be bound beside the operands of either
// launch.
Verdict ScratchFits(const Region& r, int64_t bytes, const SplitOperands& bound);
inline Verdict ScratchFits(const Region& r, int64_t bytes) {
  return ScratchFits(r, bytes, SplitOperands(r));
}
// The same for `parts` of each piece; a single part needs no scratch.
inline Verdict PartsFit(const Region& r, int64_t parts, int64_t bytes) {
  return parts > 1 ? ScratchFits(r, bytes) : Verdict::Yes();
}

// Part `part` of an axis divided into `parts` of equal size; the last ones may be shorter or empty.
struct AxisPart {
  AxisPart(const ir::Dim& extent, const ir::Dim& part, int64_t parts);
  ir::Dim begin, end;
};

// The program of two launches: the one of all parts, then the one that combines them. `combine`
// gets the name of the kernel to make.
Program SplitProgram(Launch parts, int64_t scratch_bytes, std::string_view combines,
                     absl::FunctionRef<Launch(std::string name)> combine);

}  // namespace forge::codegen
