// SPDX-License-Identifier: Apache-2.0
// Finds where a barrier is needed: ranges of buffers touched since the last one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace forge::vk {

struct Access {
  uint64_t buffer;      // VulkanBuffer::id()
  uint64_t begin, end;  // bytes
  bool writes;
};

class Hazards {
 public:
  // Must what makes `next` wait for something before it? Two reads never meet.
  bool Conflicts(std::span<const Access> next) const {
    return std::any_of(next.begin(), next.end(), [&](const Access& a) {
      return std::any_of(open_.begin(), open_.end(), [&](const Access& b) {
        return a.buffer == b.buffer && (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
      });
    });
  }
  void Add(std::span<const Access> done) { open_.insert(open_.end(), done.begin(), done.end()); }
  void Clear() { open_.clear(); }  // a barrier stands here

 private:
  std::vector<Access> open_;
};

}  // namespace forge::vk
