// SPDX-License-Identifier: Apache-2.0
// Which workgroup multiplies what. Commonly one has one tile of C. Where tiles are too few to fill
// a device, or leave it half empty at the end, a number of workgroups share all steps of all tiles
// evenly (stream-k; with a whole number of them to a tile, split-k): sums of a part of a tile go to
// scratch, and a second launch adds them up.
#pragma once
#include "codegen/schedules/gemm.h"

namespace forge::codegen {

// What one workgroup does of one tile.
struct TilePart {
  ir::Dim batch, row, column;  // of the tile
  ir::Dim first = 0;           // step along k; steps beyond k add nothing
  Val steps;                   // how many
  int64_t last = 0;            // no step is beyond this one
  Val is_whole;                // all steps of the tile; null: always
  ir::Dim slot = 0;            // of scratch, where it is not
  bool kept = false;           // sums go to scratch
};

class Tiling {
 public:
  struct Size {
    int64_t rows, columns;   // of C, in a tile
    int64_t depth;           // along k, multiplied at once
    int64_t workgroups = 0;  // that share the tiles; 0: each tile has its own
    // 1, or 2: what is multiplied next is on its way from memory meanwhile, and shared memory holds
    // both slices.
    int64_t stages = 1;
  };
  Tiling(const Gemm& g, const Size& size);
  const Gemm& gemm() const { return g_; }
  const Size& size() const { return size_; }
  // A number of workgroups for products of known size that have few tiles; else 0.
  int64_t SuggestWorkgroups() const;
  Verdict Fits(const Region& r) const;
  ir::Dim workgroups() const { return shared() ? size_.workgroups : tiles(); }
  std::string Text() const;  // of a kernel's name: "_shared_by_64_staged"

  void ForParts(Emission& m, const ir::Dim& workgroup,
                absl::FunctionRef<void(const TilePart&)> body) const;
  // Calls `body`, which hands all sums of a part to Store, under what becomes of them.
  void Finish(Emission& m, TilePart part, absl::FunctionRef<void(const TilePart&)> body) const;
  // Neighbours of C, the first at `row` and `column` of the tile: `sums` is asked for them where
  // they lie inside of C, and `inside`, which may be null, holds.
  void Store(Emission& m, const TilePart& part, const ir::Dim& row, const ir::Dim& column,
             Val inside, absl::FunctionRef<Val()> sums) const;
  // Appends the launch that adds parts up, and their scratch.
  void AddUp(const Region& r, Program& out) const;

 private:
  bool shared() const { return size_.workgroups > 0; }
  ir::Dim tiles() const { return ir::Product(grid_); }
  ir::Dim steps() const { return CeilDiv(g_.k, size_.depth); }  // of a tile
  bool has_known_size() const { return tiles().is_constant() && steps().is_constant(); }
  // Workgroups that have parts of one tile alone: split-k. 0: of tiles as they come.
  int64_t of_one_tile() const;
  ir::Dim share() const;  // steps of a workgroup, less where the last tile ends
  bool may_be_whole() const { return of_one_tile() == 0 && share().max() >= steps().min(); }
  // Which workgroup has this step of a tile.
  ir::Dim WorkgroupAt(const ir::Dim& tile, const ir::Dim& step) const;
  // A workgroup keeps at most so many parts: the end of a tile that others began, and the beginning
  // of one.
  int64_t slots() const { return of_one_tile() > 0 ? 1 : 2; }
  ir::Dim SlotOf(Emission& m, const ir::Dim& tile, const ir::Dim& workgroup) const;
  int64_t scratch_bytes() const;
  Verdict SharingFits(const Region& r) const;
  bool BindsTooMany(const Region& r) const;
  TilePart PartAt(const ir::Dim& tile) const;
  TilePart OnlyPart(Emission& m, const ir::Dim& workgroup) const;
  ir::Dim PlaceOf(const ir::Dim& slot, const ir::Dim& row, const ir::Dim& column, int lanes) const;
  Val SumOf(Emission& m, const ir::Dim& tile, const ir::Dim& others, const ir::Dim& row,
            const ir::Dim& column, int lanes) const;

  const Gemm& g_;
  Size size_;
  ir::Dims grid_;  // tiles: batch, rows, columns
};

}  // namespace forge::codegen
