// SPDX-License-Identifier: Apache-2.0
// How fast a device is. A back end measures it, or assumes it.
#pragma once
#include <span>

#include "ir/graph/target.h"

namespace forge::codegen {

// A rough idea of a device's speed: for cutting submissions and comparing choices, not for show.
struct Rates {
  double flops = 0, bytes = 0;  // per second, rather too low: a piece must not become too long
  // What is read again from caches, not from memory, up to so many: see CacheBytesOf.
  int64_t cache_bytes = 0;
  // What most kernels reach at the least, where this is what the device does at most.
  Rates OfKernels() const { return {.flops = flops / 4, .bytes = bytes / 2}; }
  int64_t FlopsPerByte() const;  // to the nearest power of two, 1 or more
  // Seconds of a node with bound types; 0 where an extent is not a number yet.
  double Seconds(const ir::Candidate& node) const;
};

}  // namespace forge::codegen
