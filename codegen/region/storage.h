// SPDX-License-Identifier: Apache-2.0
// Access to elements in storage buffers. Narrow floats are computed in f32, narrow integers in i32
// or u32 and wrapped. Without 8- or 16-bit storage, 32-bit words are loaded and parts of words are
// stored atomically; on CPU devices, vectors are also accessed as words.
#pragma once
#include "codegen/region/elements.h"

namespace forge::codegen {

// Returns whether kernels can compute with elements of `t`; No: the missing feature.
Verdict CanCompute(DType t, const Caps& caps);

// The largest number of elements: flat indices are computed in 32 bits, and the last workgroups of
// a grid may extend beyond the last element.
inline constexpr int64_t kMostElements = INT32_MAX - (int64_t{1} << 26);
// Returns whether 32-bit indices reach every element for all symbol values; No: type, elements and
// limit.
Verdict CanNumber(const ir::Type& t);

// The size, in bytes, of the chunks of an operand that is larger than a storage buffer; 0: the
// device cannot bind chunks. Chunks begin at multiples of 256 bytes, so no element or vector is
// divided.
inline int64_t PartBytes(const Caps& caps) { return caps.max_operand_bytes / 256 * 256; }

// The vectorisation rule. Returns the index of the vector that contains the elements of `t` at
// flat(lane), lane = 0 .. lanes - 1, if they are contiguous, aligned to `lanes`, and the device can
// access that many at once; nullopt: access them one by one.
std::optional<ir::Dim> VectorAt(DType t, const ir::Dim& flat, const ir::SymbolRef& lane, int lanes,
                                const Caps& caps);

// Views of the operands of a launch, created on demand.
class Storage {
 public:
  Storage(Builder& b, Launch& launch, const Region& region);
  // Loads `lanes` elements from index * lanes on, as ComputeType(t); see VectorAt. operand: index
  // into Launch::operands
  Val Load(int operand, DType t, Val index, int lanes = 1);
  // Stores as many elements as `value` has lanes.
  void Store(int operand, DType t, Val index, Val value);
  // An atomic operation on an element of 32 bits; returns what was there before.
  Val Atomic(int operand, AtomicKind kind, Val index, Val value);
  // The view of an operand with such elements, and the type of an element of `t` in it.
  uint16_t ViewOf(int operand, Type elem);
  DType StoredType(DType t) const;

 private:
  Builder& b_;
  Launch& launch_;
  const Region& region_;
  const Caps& caps_;
  int results_begin_;          // operands from this index on are written
  std::vector<bool> aliased_;  // by operand of the region: it may share memory with a result
};

// Rounds an f32 to the nearest value of `t`, a float narrower than f32, half to even.
Val RoundTo(DType t, Val v);
// Wraps a ComputeType(t) to the width of the integer `t`.
Val Wrap(DType t, Val v);
// Converts between element types as docs/semantics.md defines.
Val ConvertElement(Val v, DType from, DType to);
}  // namespace forge::codegen
