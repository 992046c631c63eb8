// SPDX-License-Identifier: Apache-2.0
// What a CUDA device is, as the driver tells, and what code generation makes of it.
#pragma once
#include <optional>

#include "codegen/kernel/caps.h"
#include "codegen/target/rates.h"
#include "cuda_runtime/api/driver_api.h"

namespace forge::cuda {

struct DeviceFacts {
  std::string name;
  CuDevice device = 0;
  int driver_version = 0;  // 1000 * major + 10 * minor
  uint64_t memory_bytes = 0;
  int capability = 0;  // 10 * major + minor
  int multiprocessors = 1;
  int max_threads = 1024, max_block_x = 1024, max_block_y = 1024, max_block_z = 64;
  int max_grid_x = 2147483647, max_grid_y = 65535, max_grid_z = 65535;
  int max_shared_bytes = 49152;        // of a block, without asking for more
  int max_shared_bytes_optin = 49152;  // where a kernel asks for it
  int warp_size = 32;
  int64_t l2_bytes = 0;
  double clock_hertz = 0, memory_bytes_per_second = 0;  // 0: not told
  bool has_driver = true;                               // false: the device only compiles
};

// Asks the driver about device `ordinal`.
//   errors: Unavailable
absl::StatusOr<DeviceFacts> QueryFacts(const DriverApi& api, int ordinal);
// A device that only compiles, for an architecture such as "sm_80", with the numbers of a card of
// it.
//   errors: InvalidArgument
absl::StatusOr<DeviceFacts> FactsOfArchitecture(std::string_view architecture);

// Why Forge cannot use the device; Yes otherwise.
Verdict Usable(const DeviceFacts& facts);
codegen::Caps CapsOf(const DeviceFacts& facts);
// Estimated from clocks and widths.
codegen::Rates RatesOf(const DeviceFacts& facts);

}  // namespace forge::cuda
