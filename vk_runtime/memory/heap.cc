// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/memory/heap.h"

#include <algorithm>
#include <functional>

namespace forge::vk {
namespace {

constexpr uint64_t kBlockBytes = 64ull << 20;
constexpr uint64_t kGuaranteedAllocations = 4096;  // maxMemoryAllocationCount

uint64_t RoundUp(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

}  // namespace

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

std::vector<uint32_t> InOwnMemory(const VkPhysicalDeviceMemoryProperties& memory,
                                  std::vector<uint32_t> types) {
  const auto is_own = [&](uint32_t t) {
    return (memory.memoryTypes[t].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  };
  if (std::any_of(types.begin(), types.end(), is_own)) std::erase_if(types, std::not_fn(is_own));
  return types;
}

std::vector<uint32_t> ByRoom(const VkPhysicalDeviceMemoryProperties& memory,
                             std::vector<uint32_t> types, uint64_t bytes, const HeapBytes& left) {
  std::stable_partition(types.begin(), types.end(),
                        [&](uint32_t t) { return left[memory.memoryTypes[t].heapIndex] >= bytes; });
  return types;
}

Heap::Heap(ContextRef context)
    : context_(std::move(context)),
      largest_(LargestAllocation(context_->queries(), context_->settings())),
      most_allocations_(context_->limits().maxMemoryAllocationCount),
      spills_(context_->queries().shares_memory() || context_->settings().host_memory) {
  if (context_->settings().guaranteed)
    most_allocations_ = std::min(most_allocations_, kGuaranteedAllocations);
}

absl::StatusOr<Heap::PartRef> Heap::Allocate(const HeapRef& heap, Memory kind,
                                             const VkMemoryRequirements& needs) {
  absl::StatusOr<Part> part = [&] {
    const std::lock_guard lock(heap->mutex_);
    return heap->Take(kind, needs);
  }();
  if (part.ok())
    return PartRef(new Part(*part), [heap](const Part* p) {
      heap->Release(*p);
      delete p;
    });
  if (!absl::IsResourceExhausted(part.status())) return part.status();
  const bool could_spill = kind == Memory::kDevice && !heap->spills_;
  return ResourceExhausted(
      "no memory for {} bytes on {}; {} bytes are available: {}{}", needs.size,
      heap->context_->queries().properties.deviceName, heap->Left(), Message(part.status()),
      could_spill ? "; FORGE_VK_HOST_MEMORY=1 takes the host's memory instead, "
                    "which the device reads many times slower"
                  : "");
}

absl::StatusOr<Heap::Part> Heap::Take(Memory kind, const VkMemoryRequirements& needs) {
  const VkPhysicalDeviceMemoryProperties& memory = context_->queries().memory;
  std::vector<uint32_t> types = TypesFor(memory, kind, needs.memoryTypeBits);
  if (types.empty()) return Internal("the driver offers no memory type");
  const bool map = kind != Memory::kDevice;
  if (!map && !spills_) types = InOwnMemory(memory, std::move(types));
  const uint64_t atom = map ? context_->limits().nonCoherentAtomSize : 1;
  const Claim claim = {.bytes = RoundUp(needs.size, atom),
                       .alignment = std::max({needs.alignment, kAlignment, atom}),
                       .map = map};
  if (const auto part = TakeFree(types[0], claim)) return *part;
  // Asked for each block: other programs use the device too. What a heap has left is an estimate,
  // so those without come last, and are tried all the same.
  const HeapBytes left = LeftInHeaps();
  absl::StatusOr<Part> part = ResourceExhausted("no memory type");
  for (const uint32_t type : ByRoom(memory, std::move(types), claim.bytes, left)) {
    part = TakeNew(type, claim, left);
    if (part.ok() || !absl::IsResourceExhausted(part.status())) break;
  }
  return part;
}

std::optional<Heap::Part> Heap::TakeFree(uint32_t type, const Claim& claim) {
  for (const auto& block : blocks_) {
    if (block->type != type || block->map != claim.map) continue;
    if (const auto offset = block->free.Take(claim.bytes, claim.alignment))
      return Part{block.get(), *offset, claim.bytes};
  }
  return std::nullopt;
}

absl::StatusOr<Heap::Part> Heap::TakeNew(uint32_t type, const Claim& claim, const HeapBytes& left) {
  if (const auto part = TakeFree(type, claim)) return *part;
  const VkPhysicalDeviceMemoryProperties& memory = context_->queries().memory;
  const uint32_t heap = memory.memoryTypes[type].heapIndex;
  const uint64_t usual = std::min({kBlockBytes, memory.memoryHeaps[heap].size / 8, largest_});
  // Large parts get a block of their own, which dies with them; so does any where no block fits.
  absl::StatusOr<Block*> block = ResourceExhausted("no block");
  if (claim.bytes <= usual / 2 && usual <= left[heap]) block = NewBlock(type, claim.map, usual);
  if (!block.ok()) block = NewBlock(type, claim.map, claim.bytes);
  if (!block.ok()) return block.status();
  return Part{*block, *(*block)->free.Take(claim.bytes, claim.alignment), claim.bytes};
}

absl::StatusOr<Heap::Block*> Heap::NewBlock(uint32_t type, bool map, uint64_t bytes) {
  const VkMemoryType& t = context_->queries().memory.memoryTypes[type];
  const uint64_t heap_bytes = context_->queries().memory.memoryHeaps[t.heapIndex].size;
  if (blocks_.size() >= most_allocations_)
    return ResourceExhausted("all {} memory allocations of the driver are in use",
                             most_allocations_);
  if (bytes > largest_ || bytes > heap_bytes - std::min(heap_bytes, allocated_[t.heapIndex]))
    return ResourceExhausted("the memory heap has {} bytes, {} of them in use", heap_bytes,
                             allocated_[t.heapIndex]);
  auto info = Typed<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  info.allocationSize = bytes;
  info.memoryTypeIndex = type;
  const VolkDeviceTable& fn = context_->fn;
  FORGE_ASSIGN_OR_RETURN(OwnedMemory memory, context_->Make<OwnedMemory>(info));
  const bool coherent = (t.propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0 &&
                        context_->abilities().host_coherent;
  auto block = std::make_unique<Block>(Block{.memory = std::move(memory),
                                             .type = type,
                                             .heap = t.heapIndex,
                                             .map = map,
                                             .coherent = coherent,
                                             .size = bytes,
                                             .free = FreeList(bytes)});
  if (map) {
    void* at = nullptr;
    FORGE_RETURN_IF_ERROR(context_->Check(
        fn.vkMapMemory(context_->device, block->memory.get(), 0, VK_WHOLE_SIZE, 0, &at),
        "vkMapMemory"));
    block->mapped = static_cast<uint8_t*>(at);
  }
  allocated_[block->heap] += bytes;
  blocks_.push_back(std::move(block));
  return blocks_.back().get();
}

void Heap::Release(const Part& part) {
  std::unique_ptr<Block> dead;  // freed after the lock
  std::lock_guard lock(mutex_);
  const Block* block = part.block;
  part.block->free.Give(part.offset, part.size);
  if (!block->free.empty()) return;
  // One empty block of a type is kept, so that a loop that allocates does not thrash the driver.
  const auto spare = [&](const auto& b) {
    return b.get() != block && b->type == block->type && b->map == block->map && b->free.empty();
  };
  if (block->size <= kBlockBytes && std::none_of(blocks_.begin(), blocks_.end(), spare)) return;
  const auto at =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& b) { return b.get() == block; });
  allocated_[block->heap] -= block->size;
  dead = std::move(*at);
  blocks_.erase(at);
}

HeapBytes Heap::LeftInHeaps() const {
  const Queries& q = context_->queries();
  auto budget = Typed<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  if (context_->abilities().memory_budget) {
    auto all = Typed<VkPhysicalDeviceMemoryProperties2>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
    all.pNext = &budget;
    vkGetPhysicalDeviceMemoryProperties2(q.device, &all);
  }
  HeapBytes left{};
  for (uint32_t i = 0; i < q.memory.memoryHeapCount; ++i) {
    const bool told = budget.heapBudget[i] != 0;
    const uint64_t all = told ? budget.heapBudget[i] : q.memory.memoryHeaps[i].size;
    left[i] = all - std::min(all, told ? budget.heapUsage[i] : allocated_[i]);
  }
  return left;
}

uint64_t Heap::Left() const {
  const std::optional<uint32_t> heap = DeviceHeap(context_->queries().memory);
  const std::lock_guard lock(mutex_);
  return heap ? LeftInHeaps()[*heap] : 0;
}

}  // namespace forge::vk
