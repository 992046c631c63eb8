// SPDX-License-Identifier: Apache-2.0
// Products by workgroups that copy slices of A and B into shared memory, a step of k at a time, and
// multiply them there. Commonly a workgroup has one tile of C. Where tiles are too few to fill a
// device, or leave it half empty at the end, a number of workgroups share all steps of all tiles
// evenly (stream-k; with a whole number of them to a tile, split-k): sums of a part of a tile go to
// scratch, and a second launch adds them up.
#pragma once
#include "codegen/schedules/matmul/gemm.h"

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

// Which workgroup multiplies what.
class Tiling {
 public:
  struct Size {
    int64_t rows, columns;   // of C, in a tile
    int64_t depth;           // along k, multiplied at once
    int64_t workgroups = 0;  // that share the tiles; 0: each tile has its own
    // 1, or 2: what is multiplied next is on its way from memory meanwhile, and shared memory holds
    // both slices.
    int64_t stages = 1;
    int64_t group = 1;  // of rows of tiles: see TileAt
  };
  Tiling(const Gemm& g, const Size& size);
  const Gemm& gemm() const { return g_; }
  const Size& size() const { return size_; }
  // A number of workgroups for products of known size that have few tiles; else 0.
  int64_t SuggestWorkgroups() const;
  // As GroupFor; 1 where tiles are shared.
  int64_t SuggestGroup(const Region& r) const {
    return shared() ? 1 : GroupFor(r, g_, g_.a, size_.rows);
  }
  Verdict Fits(const Region& r) const;
  ir::Dim workgroups() const { return shared() ? size_.workgroups : tiles_; }
  std::string Text() const;  // of a kernel's name: "_shared_by_64_staged"

  void ForParts(Emission& m, const ir::Dim& workgroup,
                absl::FunctionRef<void(const TilePart&)> body) const;
  // Calls `body`, which hands all sums of a part to Store, under what becomes of them.
  void Finish(Emission& m, TilePart part, absl::FunctionRef<void(const TilePart&)> body) const;
  // Neighbours of C, the first at `row` and `column` of the tile: `sums` is asked for them where
  // they lie inside of C, and `inside`, which may be null, holds.
  void Store(Emission& m, const TilePart& part, const ir::Dim& row, const ir::Dim& column,
             Val inside, absl::FunctionRef<Val()> sums) const;
  // The launch of all workgroups, then the one that adds parts up, with their scratch.
  Program ProgramOf(const Region& r, Launch tiles) const;

 private:
  bool shared() const { return size_.workgroups > 0; }
  bool has_known_size() const { return tiles_.is_constant() && steps_.is_constant(); }
  bool may_be_whole() const { return of_one_tile_ == 0 && share_.max() >= steps_.min(); }
  // Which workgroup has this step of a tile.
  ir::Dim WorkgroupAt(const ir::Dim& tile, const ir::Dim& step) const;
  // A workgroup keeps at most so many parts: the end of a tile that others began, and the beginning
  // of one.
  int64_t slots() const { return of_one_tile_ > 0 ? 1 : 2; }
  ir::Dim SlotOf(Emission& m, const ir::Dim& tile, const ir::Dim& workgroup) const;
  int64_t scratch_bytes() const;
  TilePart PartAt(const ir::Dim& tile) const;
  ir::Dim PlaceOf(const ir::Dim& slot, const ir::Dim& row, const ir::Dim& column, int lanes) const;
  // Finishes `lanes` neighbours of C whose sums are in scratch.
  void AddUp(Emission& m, const Gemm::At& at, int lanes) const;

  const Gemm& g_;
  Size size_;
  ir::Dims grid_;            // tiles: batch, rows, columns
  ir::Dim tiles_, steps_;    // all tiles; steps of a tile
  int64_t of_one_tile_ = 0;  // workgroups of parts of one tile alone; 0: of tiles as they come
  ir::Dim share_;            // steps of a workgroup, less where the last tile ends
};

// How slices lie in shared memory and are multiplied there.
struct SliceForm {
  std::string name;      // of the kernel
  int64_t threads = 0;   // of a workgroup, which is one-dimensional
  int64_t subgroup = 0;  // threads that multiply together; 0: each by itself
  // Those that multiply, along rows of C and along its columns.
  int64_t down = 1, across = 1;
  int64_t rows = 1, columns = 1, steps = 1;  // of C and k, that one of them multiplies at once
  Type sum = {};                             // what is kept of C for those
  int64_t packed = 1;     // neighbours along k that lie as one, made by SlicedTile::Pack
  bool by_steps = false;  // a line of shared memory is of one step, else of one row or column of C
};

// One factor's slice: `length` of C's axis by the depth of a step.
struct Slice {
  // Loads as widely as memory allows: along k, or along C's axis where that is wider. It is
  // multiplied by `parts`, `apart` at once.
  Slice(const Factor& f, bool is_a, int64_t length, int64_t parts, int64_t apart)
      : factor(f),
        is_a(is_a),
        length(length),
        lanes(std::max(f.lanes_k, f.lanes_along)),
        lanes_on_k(f.lanes_k >= f.lanes_along),
        apart(apart),
        count(length / (parts * apart)) {}
  int64_t columns() const { return lanes_on_k ? 1 : lanes; }  // of C's axis, loaded at once
  int64_t steps() const { return lanes_on_k ? lanes : 1; }    // of k, the same
  // Whether neighbouring invocations load neighbours along k, else along C's axis.
  // Where nothing tells, rows of A lie along k and rows of B do not.
  bool runs_along_k() const { return lanes_on_k && (is_a || lanes > 1); }

  const Factor& factor;
  bool is_a;
  int64_t length;
  int lanes;
  bool lanes_on_k;
  int64_t apart, count;  // what is multiplied: `count` times, `apart` along C's axis
  ir::Dim first = 0;     // of those
  uint16_t view = 0;     // in shared memory,
  int64_t pitch = 0;     // where lines are so far apart
};

// A workgroup's tiles.
class SlicedTile {
 public:
  SlicedTile(const Region& r, const Tiling& tiling, const SliceForm& form);
  SlicedTile(const SlicedTile&) = delete;
  virtual ~SlicedTile() = default;
  // The launch of all workgroups, once.
  Launch Emit();

 protected:
  // To be called for each slice once, before Emit.
  void Keep(Slice& s, const SharedArray& array, int64_t pitch);
  virtual Val Pack(const Slice& s, const Vals& along_k) = 0;
  virtual Val Load(const Slice& s, Val at) = 0;  // what is multiplied at once
  virtual Val MultiplyAdd(Val a, Val b, Val sum) = 0;
  // Hands sums [of a][of b] to Tiling::Store, or what a reduction makes of their rows to a
  // RowFolding.
  virtual void Finish(const TilePart& part, const Vals& sums) = 0;
  const Gemm& gemm() const { return tiling_.gemm(); }

  Emission m_;
  const Tiling& tiling_;
  const SliceForm form_;
  Slice a_, b_;
  ir::Dim own_, lane_;  // which of those that multiply this is, and which thread of a subgroup

 private:
  // What an invocation copies at once, which is one where `inside`.
  struct Unit {
    const Slice& slice;
    ir::Dim along, k;  // of the slice
    Val inside;        // null: always
  };
  void Run(const ir::Dim& workgroup);
  void ForUnits(absl::FunctionRef<void(const Unit& unit)> body);
  Val LoadFactor(const TilePart& part, const Unit& u, const ir::Dim& k);
  Vals Fetch(const TilePart& part, const Unit& u, const ir::Dim& k);
  std::vector<Vals> FetchAll(const TilePart& part, const ir::Dim& k);
  int64_t LinesOf(const Slice& s) const;
  Val PlaceOf(const Slice& s, const ir::Dim& stage, const ir::Dim& along, const ir::Dim& k);
  void Put(const Unit& u, const Vals& fetched, const ir::Dim& stage);
  void Fill(const TilePart& part, const ir::Dim& k);
  Vals LoadAll(const Slice& s, const ir::Dim& stage, int64_t k);
  Vals Multiply(Vals sums, const ir::Dim& stage);
  Vals SumsOf(const TilePart& part);

  ir::Dim local_;  // this invocation
};

}  // namespace forge::codegen
