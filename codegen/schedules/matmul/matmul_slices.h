// SPDX-License-Identifier: Apache-2.0
// GEMM by workgroups that copy slices of A and B into shared memory, one step of k at a time.
// Usually a workgroup computes one tile of C. If there are too few tiles for the device, a fixed
// number of workgroups share the steps of all tiles evenly (stream-k; with a whole number of
// workgroups for each tile, split-k): partial sums go to scratch memory, and a second launch adds
// them.
#pragma once
#include "codegen/schedules/matmul/gemm.h"

namespace forge::codegen {

// The part of a tile that a workgroup computes.
struct TilePart {
  ir::Dim batch, row, column;  // of the tile
  ir::Dim first = 0;           // first step along k; steps beyond k add nothing
  Val steps;                   // number of steps
  int64_t last = 0;            // upper bound of the step index
  Val is_whole;                // true if these are all steps of the tile; null: always
  ir::Dim slot = 0;            // index in scratch memory, otherwise
  bool kept = false;           // sums go to scratch memory
};

// The division of a product among workgroups.
class Tiling {
 public:
  struct Size {
    int64_t rows, columns;   // of C, in a tile
    int64_t depth;           // steps along k for each slice
    int64_t workgroups = 0;  // number that share the tiles; 0: one for each tile
    // 1; 2: double buffering, shared memory holds two slices; more: a ring of slices, copied past
    // registers.
    int64_t stages = 1;
    int64_t group = 1;  // see TileAt
  };
  Tiling(const Gemm& g, const Size& size);
  const Gemm& gemm() const { return g_; }
  const Size& size() const { return size_; }
  // Returns a number of workgroups for a product of known size with few tiles; otherwise 0.
  int64_t SuggestWorkgroups() const;
  // As GroupFor; 1 if workgroups share tiles.
  int64_t SuggestGroup(const Region& r) const {
    return shared() ? 1 : GroupFor(r, g_, g_.a, size_.rows);
  }
  Verdict Fits(const Region& r) const;
  ir::Dim workgroups() const { return shared() ? size_.workgroups : tiles_; }
  std::string Text() const;  // suffix of kernel names: "_shared_by_64_staged"

  void ForParts(Emission& m, const ir::Dim& workgroup,
                absl::FunctionRef<void(const TilePart&)> body) const;
  // Calls `body`, which passes all sums of a part to Store: once for whole tiles, once for partial
  // ones.
  void Finish(Emission& m, TilePart part, absl::FunctionRef<void(const TilePart&)> body) const;
  // Stores elements of C, the first at `row` and `column` of the tile. Calls `sums` for them if
  // they are inside C and `inside` is null or true.
  void Store(Emission& m, const TilePart& part, const ir::Dim& row, const ir::Dim& column,
             Val inside, absl::FunctionRef<Val()> sums) const;
  // Returns the program: the launch of all workgroups, then the launch that adds partial sums, with
  // the scratch memory.
  Program ProgramOf(const Region& r, Launch tiles) const;

 private:
  bool shared() const { return size_.workgroups > 0; }
  bool has_known_size() const { return tiles_.is_constant() && steps_.is_constant(); }
  bool may_be_whole() const { return of_one_tile_ == 0 && share_.max() >= steps_.min(); }
  // The workgroup that computes a step of a tile.
  ir::Dim WorkgroupAt(const ir::Dim& tile, const ir::Dim& step) const;
  // The maximum number of partial tiles of a workgroup: the end of one tile and the beginning of
  // another.
  int64_t slots() const { return of_one_tile_ > 0 ? 1 : 2; }
  ir::Dim SlotOf(Emission& m, const ir::Dim& tile, const ir::Dim& workgroup) const;
  int64_t scratch_bytes() const;
  TilePart PartAt(const ir::Dim& tile) const;
  ir::Dim PlaceOf(const ir::Dim& slot, const ir::Dim& row, const ir::Dim& column, int lanes) const;
  // Finishes `lanes` elements of C whose sums are in scratch memory.
  void AddUp(Emission& m, const Gemm::At& at, int lanes) const;

  const Gemm& g_;
  Size size_;
  ir::Dims grid_;            // tiles: batch, rows, columns
  ir::Dim tiles_, steps_;    // all tiles; steps of a tile
  int64_t of_one_tile_ = 0;  // split-k: workgroups for each tile; 0: stream-k
  ir::Dim share_;            // steps of a workgroup; fewer for the last one
};

// What a line of shared memory is of a slice: a row or column of C; a step of k; or, of the two,
// what lies in memory side by side.
enum class Lines : uint8_t { kAlongK, kAlongC, kAsLoaded };

// The layout of slices in shared memory, and how they are multiplied.
struct SliceForm {
  std::string name;      // of the kernel
  int64_t threads = 0;   // of the workgroup, which is one-dimensional
  int64_t subgroup = 0;  // threads that multiply together; 0: each alone, or all
  // The number of multiplying units, threads or subgroups, along the rows and the columns of C; the
  // workgroup as a whole where it is one.
  int64_t down = 1, across = 1;
  int64_t rows = 1, columns = 1, steps = 1;  // of C and k, that a unit multiplies at once
  Type sum = {};                             // type of their sums
  // Elements packed into one by SlicedTile::Pack: along k, but along C in lines kAsLoaded of steps.
  int64_t packed = 1;
  Lines lines = Lines::kAlongK;
  int64_t longest_line = 0;  // of steps, in elements: what is beyond goes on below; 0: any
  int running = 0;           // products that may run while copies begin; see SlicedTile::Wait
};

// The slice of a factor: `length` along the axis of C, by Size::depth along k.
struct Slice {
  // Loads use the widest vectors: along k, or along the axis of C. `parts` units multiply the
  // slice, each `apart` elements at once.
  Slice(const Region& r, const Gemm& g, bool is_a, int64_t length, const SliceForm& form);
  int64_t columns() const { return lanes_on_k ? 1 : lanes; }  // along the axis of C, loaded at once
  int64_t steps() const { return lanes_on_k ? lanes : 1; }    // along k, loaded at once
  // True if consecutive invocations load consecutive elements along k; false: along the axis of C.
  // Without vectors, rows of A are assumed to be contiguous along k, and those of B not.
  bool runs_along_k() const { return lanes_on_k && (is_a || lanes > 1); }

  const Factor& factor;
  bool is_a;
  int64_t length;
  int lanes;
  bool lanes_on_k;
  bool by_steps;                   // a line of shared memory is a step of k
  int64_t packed_k, packed_along;  // elements in one of shared memory
  bool raw;                        // what is packed is loaded so, of halves that are not computed
  int64_t apart, count;  // a unit multiplies `count` times `apart` elements along the axis of C
  ir::Dim first = 0;     // the first of these elements
  uint16_t view = 0;     // in shared memory
  int64_t pitch = 0;     // distance of its lines, in elements
  int64_t line = 0;      // of a step, in elements of the factor
};

// Whether a line of the factor is a step of k; see Lines.
bool ByStepsOf(const Factor& f, Lines lines, int64_t packed);
// Whether slices of both factors are copied past registers: pieces of 16 bytes lie in memory along
// the lines that are kAsLoaded.
Verdict CopiesAsync(const Region& r, const Gemm& g);

// The kernel of a workgroup; subclasses define how slices are multiplied.
class SlicedTile {
 public:
  SlicedTile(const Region& r, const Tiling& tiling, const SliceForm& form);
  SlicedTile(const SlicedTile&) = delete;
  virtual ~SlicedTile() = default;
  // Emits the launch of all workgroups. Called once.
  Launch Emit();

 protected:
  // Places a slice in shared memory; called once for each slice, before Emit.
  void Keep(Slice& s, const SharedArray& array, int64_t pitch);
  virtual Val Pack(const Slice& s, const Vals& along_k) = 0;
  virtual Val Load(const Slice& s, Val at) = 0;  // the elements that are multiplied at once
  virtual Val MultiplyAdd(Val a, Val b, Val sum) = 0;
  // Returns the sum when all products but the last `pending` have ended.
  virtual Val Wait(Val sum, int pending);
  // Passes the sums [of a][of b] to Tiling::Store, or their reduced rows to a RowFolding.
  virtual void Finish(const TilePart& part, const Vals& sums) = 0;
  const Gemm& gemm() const { return tiling_.gemm(); }
  // Passes a matrix of sums, whose first element is at [row, column] of the tile, to Tiling::Store,
  // `together` neighbours at once.
  void StoreMatrix(const TilePart& part, const ir::Dim& row, const ir::Dim& column, Val matrix,
                   int64_t together);

  Emission m_;
  const Tiling& tiling_;
  const SliceForm form_;
  Slice a_, b_;
  ir::Dim own_, lane_;  // index of this unit, and of the thread within its subgroup

 private:
  // The elements that an invocation copies at once, if `inside`.
  struct Unit {
    const Slice& slice;
    ir::Dim along, k;  // in the slice
    Val inside;        // null: always
  };
  void Run(const ir::Dim& workgroup);
  void ForUnits(absl::FunctionRef<void(const Unit& unit)> body);
  Val LoadFactor(const TilePart& part, const Unit& u, const ir::Dim& k);
  Val LoadRaw(const Slice& s, const Factor::At& at);
  Vals Fetch(const TilePart& part, const Unit& u, const ir::Dim& k);
  std::vector<Vals> FetchAll(const TilePart& part, const ir::Dim& k);
  int64_t LinesOf(const Slice& s) const;
  Val PlaceOf(const Slice& s, const ir::Dim& stage, const ir::Dim& along, const ir::Dim& k);
  void Put(const Unit& u, const Vals& fetched, const ir::Dim& stage);
  void Fill(const TilePart& part, const ir::Dim& k);
  Vals LoadAll(const Slice& s, const ir::Dim& stage, int64_t k);
  Vals Multiply(Vals sums, const ir::Dim& stage);
  Vals SumsOf(const TilePart& part);
  // With a ring of slices.
  void CopyAsync(const TilePart& part, const Slice& s, const ir::Dim& slice);
  void BeginCopies(const TilePart& part, Val slice);
  Vals SumsOfRing(const TilePart& part, const Vals& zeros);

  ir::Dim local_;  // this invocation
};

}  // namespace forge::codegen
