// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/statistics.h"

#include <fmt/format.h>

namespace forge::ptx {

void Statistics::Add(const Statistics& o) {
  instructions += o.instructions;
  lanes += o.lanes;
  divergent += o.divergent;
  matrix += o.matrix;
  global_requests += o.global_requests;
  global_sectors += o.global_sectors;
  global_bytes += o.global_bytes;
  shared_requests += o.shared_requests;
  shared_wavefronts += o.shared_wavefronts;
  bank_conflicts += o.bank_conflicts;
  atomics += o.atomics;
  barriers += o.barriers;
}

std::string Statistics::Text() const {
  return fmt::format(
      "instructions={} lanes={} divergent={} matrix={} global_requests={} global_sectors={} "
      "global_bytes={} shared_requests={} shared_wavefronts={} bank_conflicts={} atomics={} "
      "barriers={}",
      instructions, lanes, divergent, matrix, global_requests, global_sectors, global_bytes,
      shared_requests, shared_wavefronts, bank_conflicts, atomics, barriers);
}

}  // namespace forge::ptx
