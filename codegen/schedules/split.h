// SPDX-License-Identifier: Apache-2.0
// Work of too few pieces to fill a device: each piece is split, what its parts come to goes to
// scratch, and a second launch combines them.
#pragma once
#include "codegen/schedules/emission.h"

namespace forge::codegen {

// Where splitting pays. No query tells how many workgroups a device runs at once, and a second
// launch has its price: these are defaults, and --autotune tries other numbers of parts.
struct SplitRule {
  int64_t few;       // pieces: as many fill a device without
  int64_t enough;    // parts in all: more are of no use
  int64_t shortest;  // steps of a piece: a shorter one is over before a second launch begins
  int64_t least;     // steps of a part: what is shorter takes more to combine than it gains
  int64_t most;      // parts of a piece
  // Of each of `pieces` of `length` steps: a power of two; 1: splitting does not pay.
  int64_t PartsOf(int64_t pieces, int64_t length) const;
};
// Tiles of products, whose workgroups have many sums each: few of them fill a device.
inline constexpr SplitRule kSplitProducts{
    .few = 32, .enough = 32, .shortest = 0, .least = 128, .most = 8};
// Tiles of rows of attention, by keys: a row's values are combined too, so parts are fewer.
inline constexpr SplitRule kSplitAttention{
    .few = 64, .enough = 256, .shortest = 0, .least = 128, .most = 64};
// Outputs of reductions that have an invocation each, by elements or vectors.
inline constexpr SplitRule kSplitOutputs{
    .few = 1 << 11, .enough = 1 << 14, .shortest = 1 << 12, .least = 128, .most = 512};
// Rows of reductions that have a workgroup each: long ones have 64, whatever they are.
inline constexpr SplitRule kSplitRows{
    .few = 33, .enough = 1 << 12, .shortest = 1 << 18, .least = 1, .most = 64};
// Rows of softmax, where the second launch reads all again: by cores, where those are the device.
inline constexpr SplitRule SplitSoftmax(const Caps& caps) {
  const int64_t enough = caps.runs_on_cpu ? caps.cores : 512;
  return {.few = caps.runs_on_cpu ? enough : enough / 8,
          .enough = enough,
          .shortest = 0,
          .least = 1 << 13,
          .most = 256};
}

// Of a kernel's name.
std::string SplitText(int64_t parts);

// How many arguments and results a launch of what the anchor reads binds, and one of what follows
// it.
struct SplitOperands {
  explicit SplitOperands(const Region& r);
  int64_t before, after;
};
inline constexpr int64_t kMostScratchBytes = int64_t{64} << 20;
// Whether `bytes` of scratch are not too many, and one part of them can be bound beside the
// operands of either launch.
Verdict ScratchFits(const Region& r, int64_t bytes, const SplitOperands& bound);
inline Verdict ScratchFits(const Region& r, int64_t bytes) {
  return ScratchFits(r, bytes, SplitOperands(r));
}
// The same of so many bytes for `parts` of each piece; one part needs none.
inline Verdict PartsFit(const Region& r, int64_t parts, int64_t bytes) {
  return parts > 1 ? ScratchFits(r, bytes) : Verdict::Yes();
}

// Share `part` of an axis that is cut into `parts` equal ones; the last ones may be less, or empty.
struct AxisPart {
  AxisPart(const ir::Dim& extent, const ir::Dim& part, int64_t parts);
  ir::Dim begin, end;
};

// The launch of all parts, and the one that combines them, made under the name given, with their
// scratch.
Program SplitProgram(Launch parts, int64_t scratch_bytes, std::string_view combines,
                     absl::FunctionRef<Launch(std::string name)> combine);

}  // namespace forge::codegen
