// SPDX-License-Identifier: Apache-2.0
// C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n], for whatever has this form:
// schedules of the matmul family see nothing else.
#pragma once
#include <functional>

#include "codegen/schedules/emission.h"

namespace forge::codegen {

struct Gemm {
  // A place in the iteration space. One coordinate may have Elements::Lane(lanes).
  struct At {
    ir::Dim batch, m, n, k;
  };
  ir::Dim batch = 1, m = 1, n = 1, k = 1;
  DType dtype = DType::kF32;  // of C
  DType a_type = DType::kF32, b_type = DType::kF32;
  int a_operand = 0, b_operand = 1;  // of the anchor
  std::function<ir::Dims(const At&)> a_index, b_index, c_index;
  // Where B is padded: each coordinate of b_index may lie outside of this shape, and B is 0 there.
  std::optional<ir::Dims> b_padded;
  std::function<Val(Elements&, const At&)> start;  // what the sums of a row begin with; null: 0
  // Products of scratch, whose elements are not those of the region's anchor; null: they are.
  std::function<Val(Emission&, const At&, int lanes)> load_a, load_b;
  std::function<void(Emission&, const At&, Val v, int lanes)> store;
  // Neighbours loaded at once along an axis.
  int a_lanes_m = 1, a_lanes_k = 1, b_lanes_k = 1, b_lanes_n = 1;

  Val A(Emission& m, const At& at, int lanes = 1) const;
  Val B(Emission& m, const At& at, int lanes = 1) const;
  Val Start(Emission& m, const At& at) const;
  // Hands `lanes` neighbours of C over; what sums begin with has been added.
  void Finish(Emission& m, const At& at, Val v, int lanes = 1) const;
  // The same of sums that began with 0.
  void FinishFromZero(Emission& m, const At& at, Val v, int lanes = 1) const;
};

// The region's anchor as a Gemm: matmul; convolutions of 1 x 1, channels by pixels; any other
// convolution with windows as columns (implicit, nothing is copied). nullopt where it has no such
// form.
std::optional<Gemm> GemmOf(const Region& r);
// Whether both operands are 8-bit integers.
bool OfBytes(const Gemm& g);
// Whether they are, and the device's dot products of such bytes are done in hardware.
bool DotsAreQuick(const Gemm& g, const Caps& caps);
// Whether GemmOf reads each operand element in one place only, as matmul does.
bool IsPlainGemm(const Region& r);

// Of a program: more is memory that others need.
constexpr int64_t kMostScratchBytes = int64_t{64} << 20;

// One launch of a schedule's tiles for a product that is a step of another algorithm, with numbers
// that suit the device: the first only where ShufflesAreQuick, the second where they are not.
Launch EmitShuffleProduct(const Region& r, const Gemm& g, const std::string& name);
Launch EmitSharedProduct(const Region& r, const Gemm& g, const std::string& name);

}  // namespace forge::codegen
