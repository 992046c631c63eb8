// SPDX-License-Identifier: Apache-2.0
// Products of few tiles and a long k: k is cut into pieces, workgroups multiply each into scratch,
// and a second launch adds them up. Without it most of a large device has nothing to do.
#pragma once
#include "codegen/schedules/gemm.h"

namespace forge::codegen {

// A choice of pieces for workgroups of `rows` by `columns` of C that take k in steps of `depth`;
// 1: k stays whole.
int64_t PiecesFor(const Gemm& g, int64_t rows, int64_t columns, int64_t depth);
std::string PiecesText(int64_t pieces);  // of a kernel's name: "_split_4"
Verdict PiecesFit(const Gemm& g, int64_t pieces, const Caps& caps);

// One piece of k, in steps of `depth`, the last of which may reach beyond k.
struct Piece {
  int64_t pieces = 1, depth = 1;
  ir::Dim at = 0;  // which one
  ir::Dim steps(const ir::Dim& k) const { return CeilDiv(CeilDiv(k, depth), pieces); }
  // The first k of a step.
  ir::Dim K(const ir::Dim& k, const ir::Dim& step) const { return (at * steps(k) + step) * depth; }
};

// Hands `lanes` neighbours of C over, the first at `at`: whole sums go through the epilogue.
void FinishPiece(Emission& m, const Gemm& g, const Piece& piece, Gemm::At at, Val v, int lanes);
// Appends the launch that adds the pieces up, and their scratch.
void AddPieces(const Region& r, const Gemm& g, int64_t pieces, Program& out);

}  // namespace forge::codegen
