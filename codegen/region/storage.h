// SPDX-License-Identifier: Apache-2.0
// How elements lie in storage buffers, and what kernels compute them in. Narrow floats are computed
// in f32, narrow integers in i32 or u32 and wrapped, bool is bool. Where a device has no 8- or
// 16-bit storage, whole 32-bit words are loaded, and parts of words are stored atomically; on CPUs
// vectors are words too.
#pragma once
#include "codegen/region/elements.h"

namespace forge::codegen {

// Can kernels compute with elements of `t`? No(the missing feature).
Verdict CanCompute(DType t, const Caps& caps);

// Element numbers are computed in 32 bits, and so are places in a grid, whose last row of
// workgroups may reach beyond the last element.
inline constexpr int64_t kMostElements = INT32_MAX - (int64_t{1} << 26);
// Do they reach every element, whatever is open? No(type, elements and limit).
Verdict CanNumber(const ir::Type& t);

// How large the parts are, all but the last, in which an operand is bound that one storage buffer
// cannot hold; 0: the device's are too small for that. Bindings begin at multiples of 256 bytes on
// every device, and no element or vector lies in two parts.
inline int64_t PartBytes(const Caps& caps) { return caps.max_operand_bytes / 256 * 256; }

// The one rule of vectorisation. Elements of `t` at flat(lane), for lane = 0 .. lanes - 1, are
// loaded and stored at once where they are proven to be neighbours, the first a multiple of
// `lanes`, and the device moves so many: as the vector of this number. nullopt: one by one.
std::optional<ir::Dim> VectorAt(DType t, const ir::Dim& flat, const ir::SymbolRef& lane, int lanes,
                                const Caps& caps);

// Views of the operands of one launch, made as they are needed.
class Storage {
 public:
  Storage(Builder& b, Launch& launch, const Region& region);
  // `lanes` elements from index * lanes on, in ComputeType(t): one, or a vector (see VectorAt).
  // `operand` counts as in Launch::operands.
  Val Load(int operand, DType t, Val index, int lanes = 1);
  // As many as `value` has lanes.
  void Store(int operand, DType t, Val index, Val value);

 private:
  DType StoredType(DType t) const;
  uint16_t ViewOf(int operand, Type elem);

  Builder& b_;
  Launch& launch_;
  const Region& region_;
  const Caps& caps_;
  int results_begin_;  // operands from here on are written
  std::vector<bool>
      aliased_;  // by operand of the region: a result may be in its place, or it is one
};

// The f32 value nearest to `v` that `t`, a float narrower than f32, represents, half to even.
Val RoundTo(DType t, Val v);
// `v`, a ComputeType(t), as an integer of `t` holds it.
Val Wrap(DType t, Val v);
// A value computed for elements of `from` as one for elements of `to`, as docs/semantics.md says.
Val ConvertElement(Val v, DType from, DType to);
}  // namespace forge::codegen
