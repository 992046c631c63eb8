// SPDX-License-Identifier: Apache-2.0
// A device buffer: a VkBuffer with its memory, or several where one allocation cannot hold the
// bytes.
#pragma once
#include "vk_runtime/memory/heap.h"

namespace forge::vk {

class VulkanBuffer final : public Buffer, public std::enable_shared_from_this<VulkanBuffer> {
 public:
  // Allocates a buffer. An unmapped buffer larger than one allocation uses several, each of whole
  // chunks as kernels bind them (codegen::PartBytes).
  //   errors: ResourceExhausted
  static absl::StatusOr<std::shared_ptr<VulkanBuffer>> Create(const HeapRef& heap, Memory kind,
                                                              uint64_t bytes);
  // Binds host memory in place; see Device::Import.
  //   errors: Unimplemented with the reason
  static absl::StatusOr<std::shared_ptr<VulkanBuffer>> Import(const HeapRef& heap,
                                                              const Bytes& bytes);

  uint64_t size() const override { return size_; }
  Memory memory() const override { return kind_; }
  // The location of the bytes from `offset` on, and the number of bytes that are contiguous there.
  struct Place {
    VkBuffer buffer;
    uint64_t offset, bytes;
  };
  Place At(uint64_t offset) const;
  uint64_t id() const { return id_; }  // unique within the process
  const Context* context() const { return context_.get(); }

  // Returns the mapped bytes.
  //   errors: InvalidArgument (the kind is not mapped), Unavailable (the driver maps no memory)
  absl::StatusOr<std::span<uint8_t>> Mapped() const;
  // Make writes of the host visible to the device, and of the device to the host, where the memory
  // is not coherent.
  absl::Status Flush() const { return Sync(true); }
  absl::Status Invalidate() const { return Sync(false); }

 private:
  explicit VulkanBuffer(ContextRef context);
  struct Piece {
    OwnedBuffer buffer;
    Heap::PartRef memory;  // null: imported
  };
  // Adds a VkBuffer without memory and returns its requirements.
  absl::StatusOr<VkMemoryRequirements> AddPiece(uint64_t bytes, const void* next);
  absl::Status Bind(VkDeviceMemory memory, uint64_t offset) const;  // to the last piece
  absl::Status AddPieces(const HeapRef& heap);
  absl::Status Sync(bool flush) const;
  const Heap::PartRef& mapped() const { return pieces_[0].memory; }

  ContextRef context_;
  Bytes imported_;
  OwnedMemory imported_memory_;
  std::vector<Piece> pieces_;                        // in order
  uint64_t piece_bytes_ = 0;                         // size of each piece except the last
  uint64_t size_ = 0, base_ = 0, end_ = 0, id_ = 0;  // base_: where it begins in the first piece
  Memory kind_ = Memory::kDevice;
};
using VulkanBufferRef = std::shared_ptr<VulkanBuffer>;

}  // namespace forge::vk
