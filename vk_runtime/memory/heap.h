// SPDX-License-Identifier: Apache-2.0
// Device memory: types chosen by what they are for, cut out of large blocks, because a driver
// allows few allocations. Only buffers lie in it, so bufferImageGranularity never matters.
#pragma once
#include <array>
#include <map>
#include <optional>

#include "vk_runtime/api/context.h"
#include "vk_runtime/api/memory_types.h"

namespace forge::vk {

// Which parts of a block of memory are free: best fit over disjoint ranges that are never adjacent.
// Not synchronised.
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

// Bytes that each memory heap has left.
using HeapBytes = std::array<uint64_t, VK_MAX_MEMORY_HEAPS>;

class Heap {
  // What the driver gave at once.
  struct Block {
    OwnedMemory memory;
    uint32_t type, heap;
    bool map;
    bool coherent;
    uint64_t size;
    uint8_t* mapped = nullptr;
    FreeList free;
  };
  // What is asked of a block.
  struct Claim {
    uint64_t bytes, alignment;
    bool map;
  };

 public:
  explicit Heap(ContextRef context);
  Heap(const Heap&) = delete;

  // A part of a block, given back with the last reference.
  struct Part {
    Block* block;
    uint64_t offset, size;
    VkDeviceMemory memory() const { return block->memory.get(); }
    // Null unless the kind is mapped; null too where a driver maps nothing.
    uint8_t* mapped() const { return block->mapped == nullptr ? nullptr : block->mapped + offset; }
    // False: flush after writing, invalidate before reading.
    bool coherent() const { return block->coherent; }
  };
  using PartRef = std::shared_ptr<const Part>;
  // From a heap with memory left where there is one. Memory::kDevice never lies in the host's
  // memory where the device has its own, unless Settings::host_memory says so.
  //   errors: ResourceExhausted with the bytes asked for and left
  static absl::StatusOr<PartRef> Allocate(const std::shared_ptr<Heap>& heap, Memory kind,
                                          const VkMemoryRequirements& needs);

  uint64_t Left() const;  // bytes, of the heap that Memory::kDevice comes from
  uint64_t largest_allocation() const { return largest_; }  // bytes
  const ContextRef& context() const { return context_; }

 private:
  // All but Release under mutex_.
  absl::StatusOr<Part> Take(Memory kind, const VkMemoryRequirements& needs);
  std::optional<Part> TakeFree(uint32_t type, const Claim& claim);
  absl::StatusOr<Part> TakeNew(uint32_t type, const Claim& claim, const HeapBytes& left);
  absl::StatusOr<Block*> NewBlock(uint32_t type, bool map, uint64_t bytes);
  void Release(const Part& part);
  HeapBytes LeftInHeaps() const;

  ContextRef context_;
  uint64_t largest_, most_allocations_;
  bool spills_;  // to the host's memory
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;    // under mutex_
  uint64_t allocated_[VK_MAX_MEMORY_HEAPS] = {};  // bytes, under mutex_
};
using HeapRef = std::shared_ptr<Heap>;

// Those of `types` in the device's own memory; all where none is.
std::vector<uint32_t> InOwnMemory(const VkPhysicalDeviceMemoryProperties& memory,
                                  std::vector<uint32_t> types);

// `types` with those first whose heap has `bytes` left; else in their order.
std::vector<uint32_t> ByRoom(const VkPhysicalDeviceMemoryProperties& memory,
                             std::vector<uint32_t> types, uint64_t bytes, const HeapBytes& left);

}  // namespace forge::vk
