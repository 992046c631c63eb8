// SPDX-License-Identifier: Apache-2.0
// Bytes on the device: a VkBuffer with its memory, or several where one allocation cannot hold
// them.
#pragma once
#include "vk_runtime/memory/heap.h"

namespace forge::vk {

class VulkanBuffer final : public Buffer, public std::enable_shared_from_this<VulkanBuffer> {
 public:
  // More bytes than one allocation may have lie in several, if they are not mapped; each holds
  // whole parts as kernels bind them (codegen::PartBytes).  errors: ResourceExhausted
  static absl::StatusOr<std::shared_ptr<VulkanBuffer>> Create(const HeapRef& heap, Memory kind,
                                                              uint64_t bytes);
  // Binds host memory in place; see Device::Import.  errors: Unimplemented with the reason
  static absl::StatusOr<std::shared_ptr<VulkanBuffer>> Import(const HeapRef& heap,
                                                              const Bytes& bytes);

  uint64_t size() const override { return size_; }
  Memory memory() const override { return kind_; }
  // Where the bytes from `offset` on lie, and how many of them there.
  struct Place {
    VkBuffer buffer;
    uint64_t offset, bytes;
  };
  Place At(uint64_t offset) const;
  uint64_t id() const { return id_; }  // of this process; never used twice
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
  struct Piece {
    OwnedBuffer buffer;
    Heap::PartRef memory;  // null: imported
  };
  // Adds a VkBuffer without memory, and says what it needs.
  absl::StatusOr<VkMemoryRequirements> AddPiece(uint64_t bytes, const void* next);
  absl::Status Bind(VkDeviceMemory memory, uint64_t offset) const;  // to the piece added last
  absl::Status AddPieces(const HeapRef& heap);
  absl::Status Sync(bool flush) const;
  const Heap::PartRef& mapped() const { return pieces_[0].memory; }

  ContextRef context_;
  Bytes imported_;
  OwnedMemory imported_memory_;
  std::vector<Piece> pieces_;                        // one behind the other
  uint64_t piece_bytes_ = 0;                         // of each but the last
  uint64_t size_ = 0, base_ = 0, end_ = 0, id_ = 0;  // base_: where it begins in the first piece
  Memory kind_ = Memory::kDevice;
};
using VulkanBufferRef = std::shared_ptr<VulkanBuffer>;

}  // namespace forge::vk
