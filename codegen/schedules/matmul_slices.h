// SPDX-License-Identifier: Apache-2.0
// How a workgroup goes along k: it copies slices of A and B into shared memory, a step of k at a
// time, and multiplies them there.
#pragma once
#include "codegen/schedules/matmul_split.h"

namespace forge::codegen {

// One operand's slice: `length` of C's axis by the depth of a step.
struct Slice {
  // Loads as widely as memory allows: along k, or along C's axis where that is wider.
  Slice(const Gemm& g, bool is_a, int64_t length);
  int64_t columns() const { return lanes_on_k ? 1 : lanes; }  // of C's axis, loaded at once
  // Whether neighbouring invocations load neighbours along k, else along C's axis.
  // Where nothing tells, rows of A lie along k and rows of B do not.
  bool runs_along_k() const { return lanes_on_k && (is_a || lanes > 1); }

  // Neighbours of the operand, the first at `along` C's axis and `k`; 0 where they lie outside.
  Val Load(Emission& m, const ir::Dim& batch, const ir::Dim& along, const ir::Dim& k) const;
  // For each of columns() `count` neighbours along k.
  std::vector<Vals> LoadAlongK(Emission& m, const ir::Dim& batch, const ir::Dim& along,
                               const ir::Dim& k, int count) const;

  const Gemm& g;
  bool is_a;
  int64_t length;
  int lanes;
  bool lanes_on_k;
};

// How one slice gets into shared memory, a unit of columns() and some steps of k to an invocation
// at a time.
struct SliceCopy {
  const Slice& slice;
  int64_t steps;                                                      // of k, in a unit
  std::function<Vals(const ir::Dim& along, const ir::Dim& k)> fetch;  // `along`: of the slice
  std::function<void(const Vals& fetched, const ir::Dim& stage, const ir::Dim& along,
                     const ir::Dim& k)>
      put;  // `k`: of the slice
};

struct SliceLoop {
  Emission& m;
  int64_t threads;  // of the workgroup, which is one-dimensional
  ir::Dim local;    // this invocation
  int64_t depth;    // along k, of slices
  // 1, or 2: what is multiplied next is on its way from memory meanwhile, and shared memory holds
  // both.
  int64_t stages;
  std::vector<SliceCopy> copies;
  std::function<Vals(Vals sums, const ir::Dim& stage)> multiply;

  // The sums after all steps of a part of a tile.
  Vals Run(const TilePart& part, Vals sums) const;

 private:
  // Calls `body` for each of this invocation's units, which is one where `inside`.
  struct Unit {
    const SliceCopy& copy;
    ir::Dim along, k;
    Val inside;  // null: always
  };
  void ForUnits(absl::FunctionRef<void(const Unit& unit)> body) const;
  void Fill(const ir::Dim& k) const;
  std::vector<Vals> Fetch(const ir::Dim& k) const;
  void Put(std::span<const Vals> fetched, const ir::Dim& stage) const;
};

std::string StagesText(int64_t stages);  // of a kernel's name: "_staged"
// Whether a product can have as many.
Verdict StagesFit(const Gemm& g, int64_t stages);

}  // namespace forge::codegen
