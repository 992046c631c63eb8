// SPDX-License-Identifier: Apache-2.0
// Which parts of a block of memory are free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

namespace forge::vk {

// Best fit over disjoint ranges that are never adjacent. Not synchronised.
class FreeList {
 public:
  explicit FreeList(uint64_t size) : size_(size), free_{{0, size}} {}
  // An offset that is a multiple of `alignment` (a power of two) with `size` bytes behind it, or
  // nothing.
  std::optional<uint64_t> Take(uint64_t size, uint64_t alignment);
  // Gives back what Take gave, with the same size; FORGE_CHECKs that it was taken.
  void Give(uint64_t offset, uint64_t size);
  bool empty() const { return free_.size() == 1 && free_.begin()->second == size_; }

 private:
  uint64_t size_;
  std::map<uint64_t, uint64_t> free_;  // offset -> bytes
};

}  // namespace forge::vk
