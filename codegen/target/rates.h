// SPDX-License-Identifier: Apache-2.0
// The speed of a device, measured or assumed by the backend.
#pragma once
#include <span>

#include "ir/graph/target.h"

namespace forge::codegen {

// Approximate rates, for dividing submissions and comparing choices.
struct Rates {
  double flops = 0,
         bytes =
             0;  // per second; rather too low than too high, so that no submission takes too long
  // The size of data that repeated reads find in a cache; see CacheBytesOf.
  int64_t cache_bytes = 0;
  // Given peak rates, returns the rates that most kernels at least reach.
  Rates OfKernels() const { return {.flops = flops / 4, .bytes = bytes / 2}; }
  int64_t FlopsPerByte() const;  // rounded to a power of two, at least 1
  // The estimated time of a node in seconds; 0 while a dimension is symbolic.
  double Seconds(const ir::Candidate& node) const;
};

}  // namespace forge::codegen
