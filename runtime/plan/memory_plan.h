// SPDX-License-Identifier: Apache-2.0
// Memory planning: offsets of values in an arena, by their lifetimes.
#pragma once
#include <vector>

#include "base/status.h"
#include "ir/type/type.h"

namespace forge {

// The bytes of a value whose dimensions are numbers; the maximum where step values leave them open.
// errors: those of ir::Type::bytes
absl::StatusOr<uint64_t> BytesOf(const ir::Type& t);

// A value that occupies `bytes` from step `first` to step `last`, inclusive.
struct Lifetime {
  uint64_t bytes;
  int first, last;
};

// Where a value is placed.
struct Placement {
  int chunk = 0;
  uint64_t offset = 0;  // multiple of kAlignment
};

// The placement of all values.
struct ArenaPlan {
  std::vector<Placement> places;      // one for each lifetime
  std::vector<uint64_t> chunk_bytes;  // exceeds the limit only where every value in the chunk does
  uint64_t largest_live_set = 0;      // lower bound of any plan, bytes
  uint64_t total_bytes() const;
};

// Places the largest values first, each at the lowest offset that is free during its lifetime.
// Values larger than `largest_chunk` are placed at offset 0 of chunks that hold only such values.
//   largest_chunk: bytes
ArenaPlan PlanArena(const std::vector<Lifetime>& values, uint64_t largest_chunk);
// Gives each value its own chunk.
ArenaPlan OneChunkEach(const std::vector<Lifetime>& values);

}  // namespace forge
