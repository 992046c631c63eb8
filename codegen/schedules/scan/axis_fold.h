// SPDX-License-Identifier: Apache-2.0
// Scans and index reductions: how elements along an axis are combined, by an invocation, by a
// workgroup, and between two launches.
#pragma once
#include "codegen/schedules/rows/rows.h"
#include "codegen/schedules/split.h"

namespace forge::codegen {

enum class FoldKind : uint8_t { kSum, kProd, kMax, kMin, kLogSumExp };

// The combination of elements. A partial result is a value or, for an extreme with an index, a
// value and the i32 position of its element.
struct FoldRule {
  FoldKind kind = FoldKind::kSum;
  DType dtype = DType::kF32;  // of elements
  bool with_index = false;
  bool last = false;  // with an index: the last of equal elements, not the first

  Type type() const;  // in which values are held
  size_t size() const { return with_index ? 2 : 1; }
  Type TypeOf(size_t component) const { return component == 0 ? type() : kI32; }
  Val Held(Val element) const;
  Val Element(Val held) const;  // of type `dtype`
  // The result of no element. `first`: the position of the first element that will follow.
  Vals Start(Builder& b, int lanes, Val first) const;
  Vals Next(const Vals& so_far, const Vals& x) const;  // x comes after all others
  Vals Combine(const Vals& a, const Vals& b) const;    // in either order
};

// The rows of operand 0 along some axes, in the order of a scan.
struct FoldedAxis {
  FoldRule rule;
  RowSpace space;
  bool reverse = false;
};

// What an invocation loads at once: `across` neighbouring rows or `along` elements of a row.
struct FoldTile {
  int across = 1, along = 1;
  int lanes() const { return std::max(across, along); }
};
FoldTile DefaultFoldTile(const RowSpace& space);
Verdict FoldTileFits(const RowSpace& space, const FoldTile& tile);

// Access to the rows of an axis. Positions count in the order of the scan.
class AxisWalk {
 public:
  AxisWalk(Emission& m, const FoldedAxis& axis, FoldTile tile) : m_(m), axis_(axis), tile_(tile) {}
  ir::Dim Vectors() const { return FloorDiv(axis_.space.length(), tile_.along); }
  // Combines the vectors of a row that the range counts, in any order.
  Vals Fold(const ir::Dim& first_row, const Builder::Range& vectors);
  // The elements of one vector in order, each a partial result for `across` rows.
  std::vector<Vals> Load(const ir::Dim& first_row, const ir::Dim& vector);
  // Stores the results of its elements.
  void Finish(const ir::Dim& first_row, const ir::Dim& vector, const std::vector<Vals>& results);
  // The partial result of no element before that vector.
  Vals Start(Val vector);

 private:
  ir::Dims Index(const ir::Dim& first_row, const ir::Dim& vector);
  Val Position(Val vector);  // of its first element
  Emission& m_;
  const FoldedAxis& axis_;
  FoldTile tile_;
};

// Partial results of parts of rows, in scratch 0.
class FoldScratch {
 public:
  FoldScratch(const FoldedAxis& axis, int64_t parts) : axis_(axis), parts_(parts) {}
  int64_t Bytes() const;
  void Store(Emission& m, const ir::Dim& part, const ir::Dim& first_row, const Vals& results) const;
  // Combines those of the parts before `end`.
  Vals Gather(Emission& m, const ir::Dim& end, const ir::Dim& first_row, int across) const;

 private:
  ir::Dim Place(size_t component, const ir::Dim& part, const ir::Dim& row) const;
  const FoldedAxis& axis_;
  int64_t parts_;
};

// Combines the partial results of the invocations of a one-dimensional workgroup, a power of two.
// The control flow around the calls is uniform.
class WorkgroupFold {
 public:
  WorkgroupFold(Emission& m, const FoldRule& rule);
  Val rank();  // the place of this invocation in the order of Scan
  Vals Reduce(const Vals& mine);
  struct Scanned {
    Vals before, all;  // of the invocations before this one, and of all
  };
  Scanned Scan(const Vals& mine);
  static std::vector<SharedArray> Shared(int64_t invocations, const FoldRule& rule);

 private:
  void Store(Val at, const Vals& v);
  Vals Load(Val at);
  Vals Select(Val condition, const Vals& a, const Vals& b);
  Vals ScanTree(Vals mine);  // inclusive, in shared memory
  Scanned ScanSubgroups(const Vals& mine);
  Emission& m_;
  const FoldRule& rule_;
  bool by_subgroups_;
  std::vector<uint16_t> views_;
};

}  // namespace forge::codegen
