// SPDX-License-Identifier: Apache-2.0
// Sorting of tiles in shared memory by a bitonic network. A key goes with the index of its element,
// which decides between equal keys, so that every network is stable.
#pragma once
#include "codegen/region/storage.h"
#include "codegen/schedules/rows/rows.h"
#include "codegen/schedules/split.h"

namespace forge::codegen {

// The order of elements. Keys of up to 32 bits are integers whose ascending order is that of the
// sort.
struct SortOrder {
  DType dtype = DType::kF32;  // of elements
  bool descending = false;

  Type key() const;
  Val KeyOf(Val element) const;
  Val LastKey(Builder& b) const;  // after every other, or equal to the last
};
// A key and the i32 index of its element.
struct Keyed {
  Val key, index;
};
Val IsBefore(const SortOrder& order, const Keyed& a, const Keyed& b);
Keyed Select(Val condition, const Keyed& a, const Keyed& b);

// The rows of operand 0 along an axis.
struct SortForm {
  SortOrder order;
  RowSpace space;
  int64_t length() const { return space.length().constant(); }  // once it is bound
};
SortForm SortFormOf(const Region& r, int64_t axis, bool descending);

// Parameters of the schedules.
struct SortTiles {
  int64_t workgroup = 128;
  int64_t tile = 2048;  // elements that are sorted in shared memory, a power of two
  static constexpr Field kFields[] = {
      FieldOf<&SortTiles::workgroup>("workgroup", "Invocations in a workgroup.", "8|64|128|256"),
      FieldOf<&SortTiles::tile>("tile", "Elements sorted in shared memory.",
                                "16|64|256|512|1024|2048|4096")};
  // Elements of all tiles of a workgroup: short rows share it.
  int64_t elements() const { return std::max(tile, 2 * workgroup); }
};
// most: elements of a tile
SortTiles DefaultSortTiles(const Region& r, const SortForm& f, int64_t most);
inline constexpr int64_t kLargeTile = 2048;
Verdict SortTilesFit(const Region& r, const SortForm& f, const SortTiles& t);

// Where the elements of tiles come from and go to. Positions are those in the row of this step,
// before sorting and after it.
struct TileSteps {
  ir::Dim tiles;  // of all rows
  absl::FunctionRef<Keyed(Emission& m, const ir::Dim& tile, const ir::Dim& position)> load;
  absl::FunctionRef<void(Emission& m, const ir::Dim& tile, const ir::Dim& position, const Keyed&)>
      store;
  int64_t stored;  // of each tile
};
Launch EmitTileSort(const Region& r, const SortOrder& order, const SortTiles& t, std::string name,
                    const TileSteps& steps);

// Keys and indices in scratch: `which` is one of two arrays of them.
struct KeyedScratch {
  const SortOrder& order;
  int64_t elements;
  Keyed Load(Emission& m, int which, const ir::Dim& at) const;
  void Store(Emission& m, int which, const ir::Dim& at, const Keyed& v) const;
  std::vector<int64_t> Bytes(int arrays) const;
};

// Whether the last launch has room for the results beside the scratch that it reads. If not, it
// leaves the order in scratch, and a further launch stores results.
bool FinishesAtOnce(const Region& r);
// Whether the device binds enough operands for either.
Verdict ScratchBinds(const Region& r);
// The launch that stores the first `count` results of each row, of which the order is in scratch,
// rows `stride` elements apart.
struct KeptOrder {
  int which;  // array of the scratch
  int64_t stride, count;
};
Launch EmitKept(const Region& r, const SortForm& f, const KeptOrder& kept, std::string name);

// The element of the row at `position`; what lies beyond the row comes last.
Keyed LoadKeyed(Emission& m, const SortForm& f, const ir::Dim& row, const ir::Dim& position);
// Stores both results at `place` of the row: the element that the index names, and the index.
void FinishKeyed(Emission& m, const SortForm& f, const ir::Dim& row, const ir::Dim& place,
                 Val index);

}  // namespace forge::codegen
