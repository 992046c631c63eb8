// SPDX-License-Identifier: Apache-2.0
// What the invocations of a workgroup compute together.
#pragma once
#include "codegen/schedules/emission.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::codegen {

Val Combine(ReduceKind kind, Val a, Val b);
// The lanes of a vector as one, from the first to the last.
Val CombineLanes(ReduceKind kind, Val v);

// How an ir::Reduce makes one of elements: means are sums until they are done.
struct ReduceRule {
  Val Start(Builder& b, int lanes) const;  // what changes nothing
  ReduceKind kind() const;
  Val Fold(Val a, Val x) const { return Combine(kind(), a, x); }
  Val Done(Val all, const ir::Dim& elements) const;
  Type type() const { return AccumulatorOf(dtype); }

  ir::ReduceKind of;
  DType dtype;  // of elements
};

// Invocations of a workgroup that have a tile in registers and slices of operands in shared memory,
// along its rows and along its columns: what every device allows.
struct TileThreads {
  static constexpr int64_t kRows = 8, kColumns = 16, kAll = kRows * kColumns;
};
// How far lines of so many elements are apart in shared memory: four elements, the widest vector,
// from a multiple of the banks, so that those below each other lie in different ones.
inline int64_t Pitch(int64_t length) { return length + 4; }
// Shares `count` units of a copy out among `threads` invocations, of which this is `local`: calls
// `body` for each of its own, which are there where `inside`, which may be null, holds.
void ForUnits(Emission& m, const ir::Dim& local, int64_t threads, int64_t count,
              absl::FunctionRef<void(const ir::Dim& unit, Val inside)> body);

// Combines one value of each invocation into one that all see, in a fixed order: by subgroups where
// their size is known, else by a tree. The workgroup is one-dimensional and a power of two; control
// flow around the call is uniform.
class WorkgroupReduction {
 public:
  // Makes the kernel require the subgroup's size where it uses subgroups.
  WorkgroupReduction(Emission& m, Type element);
  Val Reduce(ReduceKind kind, Val mine);
  // What it needs at most: a value of each invocation, or subgroup.
  static std::array<SharedArray, 1> Shared(int64_t invocations, Type element) {
    return {SharedArray{element, invocations}};
  }

 private:
  Val OverSubgroups(ReduceKind kind, Val mine);
  Val OverTree(ReduceKind kind, Val mine);
  Emission& m_;
  bool by_subgroups_;
  uint16_t view_ = 0;  // of parts, where the workgroup is not one subgroup
};

}  // namespace forge::codegen
