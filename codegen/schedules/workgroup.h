// SPDX-License-Identifier: Apache-2.0
// Cooperation of the invocations of a workgroup: reductions and shared tiles.
#pragma once
#include "codegen/schedules/emission.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::codegen {

Val Combine(ReduceKind kind, Val a, Val b);
// Combines the lanes of a vector, from the first to the last.
Val CombineLanes(ReduceKind kind, Val v);

// The accumulation of an ir::Reduce. A mean is accumulated as a sum.
struct ReduceRule {
  Val Start(Builder& b, int lanes) const;  // the neutral element
  ReduceKind kind() const;
  Val Fold(Val a, Val x) const { return Combine(kind(), a, x); }
  Val Done(Val all, const ir::Dim& elements) const;
  Type type() const { return AccumulatorOf(dtype); }

  ir::ReduceKind of;
  DType dtype;  // of elements
};

// The invocations, along rows and columns, of a workgroup that keeps a tile in registers and slices
// of the operands in shared memory. Every device allows this size.
struct TileThreads {
  static constexpr int64_t kRows = 8, kColumns = 16, kAll = kRows * kColumns;
};
// The distance, in elements, between lines of this length in shared memory. Four elements of
// padding, the widest vector, put the elements of a column into different banks.
inline int64_t Pitch(int64_t length) { return length + 4; }
// Divides `count` units of a copy among `threads` invocations and calls `body` for each unit of
// invocation `local`. The unit exists if `inside` is null or true.
void ForUnits(Emission& m, const ir::Dim& local, int64_t threads, int64_t count,
              absl::FunctionRef<void(const ir::Dim& unit, Val inside)> body);

// Halves that one asynchronous copy takes.
constexpr int kPiece = kSwizzledPieceBytes / 2;
// Whether halves of an operand of the anchor can be copied past registers along one of its axes:
// pieces of 16 bytes lie side by side in one part of an argument. `index` maps the number of the
// lane in a piece to the operand's index there.
bool LiesInPieces(const Region& r, int operand, const ir::Dim& extent,
                  absl::FunctionRef<ir::Dims(const ir::Dim& lane)> index);

// Lines of a matrix in shared memory.
struct SharedLines {
  uint16_t view = 0;
  int64_t count = 0, length = 0;  // of lines; of elements of a line
  int lanes = 1;                  // elements loaded at once; divides `length`
  // From one line to the next; 0: lines stand beside each other, element by element, Pitch(count)
  // from one to the next.
  int64_t pitch = 0;
};
// Fills them by the invocations of TileThreads, of which `local` is this one. `load` returns
// `lanes` elements of a line.
void FillShared(Emission& m, const ir::Dim& local, const SharedLines& to,
                absl::FunctionRef<Val(const ir::Dim& line, const ir::Dim& element)> load);

// Combines a value of each invocation, in a fixed order, into one value for all: with subgroup
// operations if the subgroup size is known, otherwise as a tree. The workgroup is one-dimensional
// with a power of two of invocations; the control flow around the call is uniform.
class WorkgroupReduction {
 public:
  // If subgroups are used, the kernel requires their size.
  WorkgroupReduction(Emission& m, Type element);
  Val Reduce(ReduceKind kind, Val mine);
  // The shared memory that it needs at most: one value of each invocation.
  static std::array<SharedArray, 1> Shared(int64_t invocations, Type element) {
    return {SharedArray{element, invocations}};
  }

 private:
  Val OverSubgroups(ReduceKind kind, Val mine);
  Val OverTree(ReduceKind kind, Val mine);
  Emission& m_;
  bool by_subgroups_;
  uint16_t view_ = 0;  // partial results; unused if the workgroup is one subgroup
};

}  // namespace forge::codegen
