// SPDX-License-Identifier: Apache-2.0
// How a workgroup goes along k: it copies slices of A and B into shared memory, a step of k at a
// time, and multiplies them there.
#pragma once
#include "codegen/schedules/matmul_split.h"

namespace forge::codegen {

// One factor's slice: `length` of C's axis by the depth of a step.
struct Slice {
  // Loads as widely as memory allows: along k, or along C's axis where that is wider.
  Slice(const Factor& f, bool is_a, int64_t length);
  int64_t columns() const { return lanes_on_k ? 1 : lanes; }  // of C's axis, loaded at once
  int64_t steps() const { return pack ? packed : lanes_on_k ? lanes : 1; }  // of k, the same
  // Whether neighbouring invocations load neighbours along k, else along C's axis.
  // Where nothing tells, rows of A lie along k and rows of B do not.
  bool runs_along_k() const { return lanes_on_k && (is_a || lanes > 1); }

  const Factor& factor;
  bool is_a;
  int64_t length;
  int lanes;
  bool lanes_on_k;

  // The rest is a schedule's. In shared memory lie elements, or what `pack` makes of `packed`
  // neighbours along k, of which `place` is told the first.
  uint16_t view = 0;
  std::function<ir::Dim(const ir::Dim& stage, const ir::Dim& along, const ir::Dim& k)> place = {};
  int64_t packed = 1;
  std::function<Val(const Vals&)> pack = {};
  // What is multiplied at once: `count` loads, `apart` along C's axis, from `first` on.
  std::function<Val(Val at)> load = {};
  int64_t count = 1, apart = 1;
  ir::Dim first = 0;
};

// A workgroup's tiles. Schedules say how slices lie in shared memory and are multiplied there.
class SlicedTile {
 public:
  // threads: of the workgroup, which is one-dimensional     sum: what is kept of C
  // step: along k, multiplied at once
  SlicedTile(Emission& m, const Tiling& tiling, int64_t threads, Type sum, int64_t step);
  SlicedTile(const SlicedTile&) = delete;
  virtual ~SlicedTile() = default;
  // Everything that one workgroup does.
  void Run(const ir::Dim& workgroup);

 protected:
  // Sets what this invocation multiplies of each slice.
  virtual void Place() = 0;
  virtual Val MultiplyAdd(Val a, Val b, Val sum) = 0;
  // Hands sums [of a][of b] to Tiling::Store.
  virtual void Finish(const TilePart& part, const Vals& sums) = 0;
  const Gemm& gemm() const { return tiling_.gemm(); }

  Emission& m_;
  const Tiling& tiling_;
  Slice a_, b_;
  ir::Dim local_;  // this invocation

 private:
  // What an invocation copies at once, which is one where `inside`.
  struct Unit {
    const Slice& slice;
    ir::Dim along, k;  // of the slice
    Val inside;        // null: always
  };
  void ForUnits(absl::FunctionRef<void(const Unit& unit)> body) const;
  Val Load(const TilePart& part, const Unit& u, const ir::Dim& k) const;
  Vals Fetch(const TilePart& part, const Unit& u, const ir::Dim& k) const;
  std::vector<Vals> FetchAll(const TilePart& part, const ir::Dim& k) const;
  void Put(const Unit& u, const Vals& fetched, const ir::Dim& stage) const;
  void Fill(const TilePart& part, const ir::Dim& k) const;
  Vals LoadFrom(const Slice& s, const ir::Dim& stage, int64_t k) const;
  Vals Multiply(Vals sums, const ir::Dim& stage);
  Vals SumsOf(const TilePart& part);

  int64_t threads_, step_;
  Type sum_;
};

}  // namespace forge::codegen
