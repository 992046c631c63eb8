// SPDX-License-Identifier: Apache-2.0
// C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n]: the only view of an anchor that
// the schedules of the matmul family use.
#pragma once
#include <functional>

#include "codegen/schedules/workgroup.h"

namespace forge::codegen {

// Operand A or B: has the axes batch, k, and an axis of C (m or n).
struct Factor {
  // An index. One coordinate may contain Elements::Lane(lanes).
  struct At {
    ir::Dim batch, along, k;  // along: the axis of C
  };
  Val Load(Emission& m, const At& at, int lanes = 1) const;
  // Load elements [step][i] of `depth` steps from `k` on at the positions `along`: position by
  // position, with vectors along k; or step by step, with vectors of `lanes` positions.
  Vals LoadPlaces(Emission& m, const ir::Dim& batch, std::span<const Position> along,
                  const ir::Dim& k, int64_t depth) const;
  Vals LoadSteps(Emission& m, const ir::Dim& batch, std::span<const Position> along,
                 const ir::Dim& k, int64_t depth, int lanes) const;

  ir::Dim extent;  // of the axis of C
  DType type = DType::kF32;
  int operand = 0;  // of the anchor
  std::function<ir::Dims(const At&)> index;
  bool padded = false;  // `index` may be outside the operand, where elements are 0
  // Loads from scratch memory; null: loads the operand of the anchor.
  std::function<Val(Emission&, const At&, int lanes)> load = nullptr;
  int lanes_along = 1, lanes_k = 1;  // elements loaded at once along an axis
};

struct Gemm {
  struct At {
    ir::Dim batch, m, n;  // n may contain Elements::Lane(lanes)
  };
  ir::Dim batch = 1, k = 1;
  DType dtype = DType::kF32;  // of C
  Factor a, b;
  std::function<ir::Dims(const At&)> c_index;
  std::function<Val(Elements&, const At&)> start;  // initial value of sums; null: 0
  // Stores to scratch memory; null: stores the result of the anchor.
  std::function<void(Emission&, const At&, Val v)> store;

  const ir::Dim& m() const { return a.extent; }
  const ir::Dim& n() const { return b.extent; }
  Val Start(Emission& m, const At& at) const;
  // Passes elements of C, from `at` on, to the region; the sums began with Start().
  void Finish(Emission& m, At at, Val v) const;
  // The same for sums that began with 0.
  void FinishFromZero(Emission& m, const At& at, Val v) const;
};

// Returns the anchor, a matmul or a convolution, as a Gemm; nullopt if it has no such form.
std::optional<Gemm> GemmOf(const Region& r);
// A convolution as a Gemm (conv_gemm.cc); GemmOf adds element types and vectors.
std::optional<Gemm> ConvAsGemm(const Region& r);
// The same, but nullopt for convolutions whose windows overlap: other schedules are faster.
std::optional<Gemm> PlainGemmOf(const Region& r);
// The order in which workgroups process the tiles of C, a grid of batch and two axes: along the
// last axis; or with `group` > 1, down `group` tiles of the axis before, then to the next position
// along the last one.
ir::Dims TileAt(const ir::Dim& tile, const ir::Dims& grid, int64_t group);
// Returns the largest group whose tiles of `outer`, of `size` positions each, fit the cache of the
// device where all of the other factor does not, so that the other factor is read from memory once
// for each group. 1: no benefit, or the cache size is unknown. Without groups 1024 x 4096 by 4096 x
// 4096 takes 1.65 times as long on llvmpipe, and 1.1 times with those of a cache of 4 MiB, which is
// why the size is measured.
int64_t GroupFor(const Region& r, const Gemm& g, const Factor& outer, int64_t size);
// Yes if computing the norm before a product (Region::norm) within it costs less than storing and
// loading the norm's result.
Verdict NormPays(const Region& r);
// Yes if a tile of `columns` columns contains whole rows for Region::reduction(), or there is no
// reduction.
Verdict HoldsRows(const Region& r, const Gemm& g, int64_t columns);
// True if one invocation can hold such a row. Longer rows need tiles that may be too large for few
// rows; the number of rows is unknown when the region is formed.
bool HoldsShortRows(const Region& r, const Gemm& g);
// Region::reduction() of rows of C within tiles.
class RowFolding {
 public:
  RowFolding(Emission& m, const Gemm& g);
  const ReduceRule& how() const { return how_; }
  // Reduces `sums` at `columns` of a row; columns outside are skipped.
  Val Fold(Gemm::At row, std::span<const Position> columns, std::span<const Val> sums) const;
  // Passes the result of a row to the region.
  void Finish(const Gemm::At& row, Val all) const;

 private:
  Emission& m_;
  const Gemm& g_;
  const ReduceRule how_;
};
// True if both operands are 8-bit integers.
bool OfBytes(const Gemm& g);
// True if the types of A and B are, and the device has hardware dot products for them.
bool DotsAreQuick(DType a, DType b, const Caps& caps);

// Emit a launch for a product that is a step of another algorithm, with parameters for the device:
// the first only if ShufflesAreQuick, otherwise the second.
Launch EmitShuffleProduct(const Region& r, const Gemm& g, const std::string& name);
Launch EmitSharedProduct(const Region& r, const Gemm& g, const std::string& name);

}  // namespace forge::codegen
