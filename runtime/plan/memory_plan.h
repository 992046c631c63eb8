// SPDX-License-Identifier: Apache-2.0
// Offsets for values in one arena, by lifetimes.
#pragma once
#include <vector>

#include "base/status.h"
#include "ir/type/type.h"

namespace forge {

// Of a value whose dimensions are numbers.  errors: those of ir::Type::bytes
absl::StatusOr<uint64_t> BytesOf(const ir::Type& t);  // at most, where step values leave it open

// A value that occupies `bytes` from step `first` to step `last`, both included.
struct Lifetime {
  uint64_t bytes;
  int first, last;
};

struct Placement {
  int chunk = 0;
  uint64_t offset = 0;  // multiple of kAlignment
};

struct ArenaPlan {
  std::vector<Placement> places;      // one for each lifetime
  std::vector<uint64_t> chunk_bytes;  // beyond the limit given only where every value in it is
  uint64_t largest_live_set = 0;      // no plan can need less
  uint64_t total_bytes() const;
};

// Places the largest first, each at the lowest offset free during its life; those beyond
// `largest_chunk` at the beginning of chunks that hold no other.
ArenaPlan PlanArena(const std::vector<Lifetime>& values, uint64_t largest_chunk);
// A chunk for each value.
ArenaPlan OneChunkEach(const std::vector<Lifetime>& values);

}  // namespace forge
