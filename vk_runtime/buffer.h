// SPDX-License-Identifier: Apache-2.0
// A VkBuffer with its memory.
#pragma once
#include "vk_runtime/heap.h"

namespace forge::vk {

class VulkanBuffer final : public Buffer, public std::enable_shared_from_this<VulkanBuffer> {
 public:
  // errors: ResourceExhausted
  static absl::StatusOr<std::shared_ptr<VulkanBuffer>> Create(const HeapRef& heap, Memory kind,
                                                              uint64_t bytes);
  // Binds host memory in place; see Device::Import.  errors: Unimplemented with the reason
  static absl::StatusOr<std::shared_ptr<VulkanBuffer>> Import(const HeapRef& heap,
                                                              const Bytes& bytes);

  uint64_t size() const override { return size_; }
  Memory memory() const override { return kind_; }
  VkBuffer handle() const { return buffer_.get(); }
  uint64_t base() const { return base_; }          // where this buffer begins in handle()
  uint64_t capacity() const { return capacity_; }  // bytes behind base(); at least size()
  uint64_t id() const { return id_; }              // of this process; never used twice
  const Context* context() const { return context_.get(); }

  // Where mapped memory of these bytes lies.  errors: InvalidArgument (not of a mapped kind),
  // Unavailable (the driver maps nothing)
  absl::StatusOr<std::span<uint8_t>> Mapped() const;
  // Makes the host's writes visible to the device, or the device's to the host, where the memory
  // is not coherent.
  absl::Status Flush() const { return Sync(true); }
  absl::Status Invalidate() const { return Sync(false); }

 private:
  explicit VulkanBuffer(ContextRef context);
  // Makes a VkBuffer without memory, and says what it needs.
  absl::StatusOr<VkMemoryRequirements> Make(uint64_t bytes, const void* next);
  absl::Status Bind(VkDeviceMemory memory, uint64_t offset) const;
  absl::Status Sync(bool flush) const;

  ContextRef context_;
  Bytes imported_;
  OwnedMemory imported_memory_;
  Heap::PartRef part_;  // null: imported
  OwnedBuffer buffer_;
  uint64_t size_ = 0, base_ = 0, capacity_ = 0, id_ = 0;
  Memory kind_ = Memory::kDevice;
};
using VulkanBufferRef = std::shared_ptr<VulkanBuffer>;

}  // namespace forge::vk
