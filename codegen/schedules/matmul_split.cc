// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/matmul_split.h"

namespace forge::codegen {
namespace {

using ir::Dim;

// As many workgroups fill most devices, and pieces shorter than this cost more to add up than they
// gain. No query tells how many workgroups a device runs at once.
constexpr int64_t kEnoughTiles = 32, kLeastPiece = 128, kMostPieces = 8;

bool HasKnownSize(const Gemm& g) {
  return g.batch.is_constant() && g.m.is_constant() && g.n.is_constant();
}

int64_t ScratchBytes(const Gemm& g, int64_t pieces) {
  return pieces * (g.batch * g.m * g.n).max() * BitWidth(AccumulatorOf(g.dtype).elem) / 8;
}

// Where a piece's vector at `at` lies in scratch, in vectors.
Dim PlaceOf(const Gemm& g, const Dim& piece, const Gemm::At& at, int lanes) {
  return ((piece * g.batch + at.batch) * g.m + at.m) * FloorDiv(g.n, lanes) + FloorDiv(at.n, lanes);
}

}  // namespace

int64_t PiecesFor(const Gemm& g, int64_t rows, int64_t columns, int64_t depth) {
  if (!HasKnownSize(g)) return 1;
  const Dim tiles = g.batch * CeilDiv(g.m, rows) * CeilDiv(g.n, columns);
  int64_t pieces = 1;
  while (pieces < kMostPieces && tiles.max() * pieces < kEnoughTiles &&
         g.k.max() >= 2 * pieces * std::max(kLeastPiece, depth))
    pieces *= 2;
  return pieces;
}

std::string PiecesText(int64_t pieces) {
  return pieces > 1 ? fmt::format("_split_{}", pieces) : "";
}

Verdict PiecesFit(const Gemm& g, int64_t pieces, const Caps& caps) {
  if (pieces == 1) return Verdict::Yes();
  if (!HasKnownSize(g)) return Verdict::No("the size of scratch is not known");
  if (g.k.max() < pieces) return Verdict::No("k has fewer steps than pieces");
  if (ScratchBytes(g, pieces) > std::min(kMostScratchBytes, caps.max_operand_bytes))
    return Verdict::No("pieces need too much scratch");
  return Verdict::Yes();
}

void FinishPiece(Emission& m, const Gemm& g, const Piece& piece, Gemm::At at, Val v, int lanes) {
  if (piece.pieces > 1) return m.e.StoreScratch(0, PlaceOf(g, piece.at, at, lanes), v);
  at.n = at.n + m.e.Lane(lanes);
  g.FinishFromZero(m, at, v, lanes);
}

void AddPieces(const Region& r, const Gemm& g, int64_t pieces, Program& out) {
  if (pieces == 1) return;
  out.scratch_bytes = {ScratchBytes(g, pieces)};
  const int lanes = LanesFor(g.n);
  const ir::Dims space = {g.batch, g.m, FloorDiv(g.n, lanes)};
  Emission m(r, out.kernel + "_add", {64, 1, 1});
  m.Guarded(m.Invocations(ir::Product(space)), [&](const Dim& index) {
    const ir::Dims place = Unflatten(index, space);
    const Gemm::At at{place[0], place[1], place[2] * lanes, 0};
    const Type type = AccumulatorOf(g.dtype).Lanes(lanes);
    Val sum = m.e.LoadScratch(0, type, PlaceOf(g, 0, at, lanes));
    for (int64_t i = 1; i < pieces; ++i)
      sum = sum + m.e.LoadScratch(0, type, PlaceOf(g, i, at, lanes));
    FinishPiece(m, g, {}, at, sum, lanes);
  });
  out.launches.push_back(std::move(m).Take());
}

}  // namespace forge::codegen
