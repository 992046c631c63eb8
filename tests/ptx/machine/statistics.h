// SPDX-License-Identifier: Apache-2.0
// What hardware would feel of a launch.
#pragma once
#include <cstdint>
#include <string>

namespace forge::ptx {

struct Statistics {
  uint64_t instructions = 0;     // of warps
  uint64_t lanes = 0;            // sum of the active lanes of those instructions
  uint64_t divergent = 0;        // instructions with fewer lanes than the warp has
  uint64_t matrix = 0;           // matrix instructions
  uint64_t global_requests = 0;  // of warps
  uint64_t global_sectors = 0;   // of 32 bytes, that those touch
  uint64_t global_bytes = 0;     // that lanes ask for
  uint64_t shared_requests = 0;
  uint64_t shared_wavefronts = 0;  // passes; one more than needed for each bank conflict
  uint64_t bank_conflicts = 0;     // passes more than needed
  uint64_t atomics = 0;
  uint64_t barriers = 0;

  void Add(const Statistics& o);
  // One line of name=value.
  std::string Text() const;
};

}  // namespace forge::ptx
