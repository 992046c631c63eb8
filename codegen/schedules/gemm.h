// SPDX-License-Identifier: Apache-2.0
// C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n], for whatever has this form:
// schedules of the matmul family see nothing else.
#pragma once
#include <functional>

#include "codegen/schedules/emission.h"

namespace forge::codegen {

struct Gemm {
  ir::Dim batch = 1, m = 1, n = 1, k = 1;
  DType dtype = DType::kF32;  // of the result
  // Coordinates in C, A and B. `lanes` neighbours along k of A, along n of B and C: where the
  // coordinate has Elements::Lane(lanes).
  struct At {
    ir::Dim batch, m, n, k;
  };
  std::function<Val(Elements&, const At&, int lanes)> a, b;
  std::function<void(Elements&, const At&, Val, int lanes)> finish;
  int a_lanes = 1, b_lanes = 1;  // neighbours to be had for the price of one
};

// The region's anchor as a Gemm: matmul, convolutions of 1 x 1; nullopt where it has no such form.
std::optional<Gemm> GemmOf(const Region& r);

}  // namespace forge::codegen
