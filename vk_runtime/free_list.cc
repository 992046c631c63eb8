// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/free_list.h"

#include "base/status.h"

namespace forge::vk {

std::optional<uint64_t> FreeList::Take(uint64_t size, uint64_t alignment) {
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const uint64_t start = (it->first + alignment - 1) & ~(alignment - 1);
    const uint64_t lost = start - it->first;
    if (it->second < lost || it->second - lost < size) continue;
    if (best == free_.end() || it->second < best->second) best = it;
  }
  if (best == free_.end()) return std::nullopt;
  const auto [begin, length] = *best;
  const uint64_t start = (begin + alignment - 1) & ~(alignment - 1);
  const uint64_t end = begin + length;
  free_.erase(best);
  if (start > begin) free_[begin] = start - begin;
  if (end > start + size) free_[start + size] = end - (start + size);
  return start;
}

void FreeList::Give(uint64_t offset, uint64_t size) {
  FORGE_CHECK(size <= size_ && offset <= size_ - size);
  auto next = free_.lower_bound(offset);
  if (next != free_.end()) {
    FORGE_CHECK(offset + size <= next->first);
    if (offset + size == next->first) {
      size += next->second;
      next = free_.erase(next);
    }
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    FORGE_CHECK(before->first + before->second <= offset);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

}  // namespace forge::vk
