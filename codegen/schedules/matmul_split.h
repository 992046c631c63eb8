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
  ir::Dim first = 0;           // step along k
  Val steps;                   // as many, at least 1, at most `most`
  ir::Dim most = 1;
  Val is_whole;      // all steps of the tile; null: always
  ir::Dim slot = 0;  // of scratch, where it is not
};

class Tiling {
 public:
  // Tiles of `rows` by `columns` of C, multiplied in steps of `depth` along k. workgroups: that
  // share them; 0: each tile has its own.
  Tiling(const Gemm& g, int64_t rows, int64_t columns, int64_t depth, int64_t workgroups = 0);
  // A number of workgroups for products of known size that have few tiles; else 0.
  int64_t SuggestWorkgroups() const;
  Verdict Fits(const Region& r) const;
  ir::Dim workgroups() const { return shared() ? workgroups_ : tiles(); }
  std::string Text() const;  // of a kernel's name: "_shared_by_64"

  void ForParts(Emission& m, const ir::Dim& workgroup,
                absl::FunctionRef<void(const TilePart&)> body) const;
  ir::Dim depth() const { return depth_; }
  // Hands `lanes` neighbours of C over: whole sums go through the epilogue. `row`, `column`: where
  // the first is in the tile; `at`: where it is in C.
  void Finish(Emission& m, const TilePart& part, const ir::Dim& row, const ir::Dim& column,
              const Gemm::At& at, Val v) const;
  // Appends the launch that adds parts up, and their scratch.
  void AddUp(const Region& r, Program& out) const;

 private:
  bool shared() const { return workgroups_ > 0; }
  ir::Dim tiles() const { return ir::Product(grid_); }
  ir::Dim steps() const { return CeilDiv(g_.k, depth_); }                    // of a tile
  ir::Dim share() const { return CeilDiv(tiles() * steps(), workgroups_); }  // of a workgroup
  // No workgroup has steps of two tiles.
  bool ends_with_tiles() const;
  bool may_be_whole() const { return share().max() >= steps().min(); }
  bool has_known_size() const;
  int64_t scratch_bytes() const;
  TilePart PartAt(Emission& m, const ir::Dim& tile) const;
  ir::Dim PlaceOf(const ir::Dim& slot, const ir::Dim& row, const ir::Dim& column, int lanes) const;
  Val SumOf(Emission& m, const ir::Dim& tile, const ir::Dim& row, const ir::Dim& column,
            int lanes) const;

  const Gemm& g_;
  int64_t rows_, columns_, depth_, workgroups_;
  ir::Dims grid_;  // tiles: batch, rows, columns
};

}  // namespace forge::codegen
