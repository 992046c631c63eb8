// SPDX-License-Identifier: Apache-2.0
// The memory of an emulated device: allocations at addresses that are no host addresses, far apart,
// so that an access outside of them is seen.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"

namespace forge::ptx {

// Windows of generic addresses; the rest is global memory.
inline constexpr uint64_t kSharedWindow = uint64_t{0x7100} << 48;
inline constexpr uint64_t kLocalWindow = uint64_t{0x7200} << 48;
inline constexpr uint64_t kParamWindow = uint64_t{0x7300} << 48;
inline constexpr uint64_t kWindowMask = uint64_t{0xffff} << 48;

struct Allocation {
  uint64_t base = 0, bytes = 0;
  std::shared_ptr<uint8_t> host;  // may alias memory of the caller
  bool constant = false;          // stores are errors
  bool Contains(uint64_t address, uint64_t n) const {
    return address >= base && address - base <= bytes && n <= bytes - (address - base);
  }
};

using AllocationTable = std::vector<Allocation>;  // by rising base

class Memory {
 public:
  explicit Memory(uint64_t capacity = uint64_t{16} << 30) : capacity_(capacity) {}
  // Returns the address of `bytes` new bytes, all 0xff: NaN in every float type.
  //   errors: ResourceExhausted
  absl::StatusOr<uint64_t> Allocate(uint64_t bytes, bool constant = false);
  // Makes host memory accessible at its own address. The caller keeps it until Free.
  absl::Status Map(void* host, uint64_t bytes);
  // errors: NotFound
  absl::Status Free(uint64_t base);
  // Returns the allocation that holds [address, address + bytes), or one without host.
  Allocation Find(uint64_t address, uint64_t bytes) const;
  // Returns what is allocated now. It stays valid when memory is freed.
  std::shared_ptr<const AllocationTable> Table() const;
  // "4 bytes behind the allocation of 64 bytes at 0x...": where an address lies.
  std::string Describe(uint64_t address) const;
  uint64_t capacity() const { return capacity_; }
  uint64_t used() const;

 private:
  absl::Status Insert(Allocation a);
  const uint64_t capacity_;
  mutable std::mutex mutex_;
  uint64_t used_ = 0;
  uint64_t next_ = uint64_t{0x0302} << 32;
  std::shared_ptr<const AllocationTable> table_ = std::make_shared<AllocationTable>();
};

// The allocation that holds the bytes, or null.
const Allocation* FindIn(const AllocationTable& table, uint64_t address, uint64_t bytes);

}  // namespace forge::ptx
