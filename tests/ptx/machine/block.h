// SPDX-License-Identifier: Apache-2.0
// The threads of a block, its shared memory and barriers.
#pragma once
#include <random>

#include "tests/ptx/machine/memory.h"
#include "tests/ptx/machine/shadow.h"
#include "tests/ptx/machine/warp.h"

namespace forge::ptx {

enum class Order { kForward, kReversed, kRandom };

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Launch {
  const Program* program = nullptr;
  Memory* memory = nullptr;
  Dim3 grid, threads;
  uint32_t dynamic_shared = 0;
  std::vector<uint8_t> params;
  Order order = Order::kForward;
  uint64_t seed = 0;
  bool races = true;
  uint64_t most_steps = uint64_t{1} << 33;  // of a block: instructions of warps
};

struct Block {
  Block(const Launch& launch, std::shared_ptr<const AllocationTable> table);
  // Runs block `id`.  errors: Aborted with the finding
  absl::Status Run(Dim3 id);

  const Launch& launch;
  std::shared_ptr<const AllocationTable> table;
  const Allocation* recent = nullptr;  // the last one accessed
  Dim3 id;
  std::vector<uint8_t> shared;
  SharedShadow shadow;
  std::vector<Warp> warps;
  std::vector<uint8_t> registers;
  Statistics statistics;
  std::mt19937_64 random;
  std::string finding;

 private:
  void Prepare(Warp& w);
  void FillSpecials(Warp& w);
  bool ReleaseBarriers();
  bool Release(int barrier, const std::vector<Warp*>& arrived);
  uint32_t live_threads() const;
};

}  // namespace forge::ptx
