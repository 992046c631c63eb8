// SPDX-License-Identifier: Apache-2.0
// C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n], for whatever has this form:
// schedules of the matmul family see nothing else.
#pragma once
#include <functional>

#include "codegen/schedules/workgroup.h"

namespace forge::codegen {

// A or B of a product: beside a batch and k it has an axis of C, m or n.
struct Factor {
  // A place in it. One coordinate may have Elements::Lane(lanes).
  struct At {
    ir::Dim batch, along, k;  // along: C's axis
  };
  Val Load(Emission& m, const At& at, int lanes = 1) const;
  // Elements [step][i] of `depth` steps from `k` on at the places `along`. One place after the
  // other, in vectors where that many steps are one; or one step after the other, in vectors of
  // `lanes` places.
  Vals LoadPlaces(Emission& m, const ir::Dim& batch, std::span<const Position> along,
                  const ir::Dim& k, int64_t depth) const;
  Vals LoadSteps(Emission& m, const ir::Dim& batch, std::span<const Position> along,
                 const ir::Dim& k, int64_t depth, int lanes) const;

  ir::Dim extent;  // of C's axis
  DType type = DType::kF32;
  int operand = 0;  // of the anchor
  std::function<ir::Dims(const At&)> index;
  bool padded = false;  // `index` may lie outside of the operand, where it is 0
  // Of scratch, whose elements are not those of the region's anchor; null: they are.
  std::function<Val(Emission&, const At&, int lanes)> load = nullptr;
  int lanes_along = 1, lanes_k = 1;  // neighbours loaded at once along an axis
};

struct Gemm {
  struct At {
    ir::Dim batch, m, n;  // n may have Elements::Lane(lanes)
  };
  ir::Dim batch = 1, k = 1;
  DType dtype = DType::kF32;  // of C
  Factor a, b;
  std::function<ir::Dims(const At&)> c_index;
  std::function<Val(Elements&, const At&)> start;  // what the sums of a row begin with; null: 0
  // C of scratch, as Factor::load.
  std::function<void(Emission&, const At&, Val v)> store;

  const ir::Dim& m() const { return a.extent; }
  const ir::Dim& n() const { return b.extent; }
  Val Start(Emission& m, const At& at) const;
  // Hands neighbours of C over, from `at` on; what sums begin with has been added.
  void Finish(Emission& m, At at, Val v) const;
  // The same of sums that began with 0.
  void FinishFromZero(Emission& m, const At& at, Val v) const;
};

// The region's anchor, a matmul or a convolution, as a Gemm; nullopt where it has no such form.
std::optional<Gemm> GemmOf(const Region& r);
// A convolution as a product (conv_gemm.cc): element types and vectors are left to GemmOf.
std::optional<Gemm> ConvAsGemm(const Region& r);
// The same where each operand element is read in one place only, as by a matmul.
std::optional<Gemm> PlainGemmOf(const Region& r);
// Workgroups take the tiles of C, a grid of batch and two axes, along the last axis; or in groups:
// down `group` tiles of the axis before it, then the next place along the last one.
ir::Dims TileAt(const ir::Dim& tile, const ir::Dims& grid, int64_t group);
// The group whose `outer` factor, of tiles of `size` places, lies in the device's cache where the
// `inner` one does not, so that this one is read from memory once for each group. 1: nothing is
// gained, or the cache is not known.
int64_t GroupFor(const Region& r, const Gemm& g, const Factor& outer, int64_t size);
// Whether a product computes the elements of the norm before it (Region::norm) for less than it
// takes to write and read them.
Verdict NormPays(const Region& r);
// Whether what Region::reduction() makes one of lies in one tile of so many columns; where there is
// no reduction, always.
Verdict HoldsRows(const Region& r, const Gemm& g, int64_t columns);
// Whether an invocation holds such rows, however many there are. Longer ones go to tiles that may
// be too large for few rows: how many they are is not known where they become one kernel.
bool HoldsShortRows(const Region& r, const Gemm& g);
// Region::reduction() of rows of C that tiles hold.
class RowFolding {
 public:
  RowFolding(Emission& m, const Gemm& g);
  const ReduceRule& how() const { return how_; }
  // What `sums` at `columns` of a row come to; columns that are not inside add nothing.
  Val Fold(Gemm::At row, std::span<const Position> columns, std::span<const Val> sums) const;
  // Hands the result of a whole row over.
  void Finish(const Gemm::At& row, Val all) const;

 private:
  Emission& m_;
  const Gemm& g_;
  const ReduceRule how_;
};
// Whether both operands are 8-bit integers.
bool OfBytes(const Gemm& g);
// Whether they are, and the device's dot products of such bytes are done in hardware.
bool DotsAreQuick(const Gemm& g, const Caps& caps);

// One launch of a schedule's tiles for a product that is a step of another algorithm, with numbers
// that suit the device: the first only where ShufflesAreQuick, the second where they are not.
Launch EmitShuffleProduct(const Region& r, const Gemm& g, const std::string& name);
Launch EmitSharedProduct(const Region& r, const Gemm& g, const std::string& name);

}  // namespace forge::codegen
