// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/memory/buffer.h"

#include "codegen/region/storage.h"

namespace forge::vk {
namespace {

constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;
// Of buffers that hold the parameters of recordings.
constexpr VkBufferUsageFlags kParameterUsage =
    VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
// Kernels may touch whole words of narrow elements, so a buffer ends on one.
constexpr uint64_t kGranule = 16;

absl::StatusOr<OwnedMemory> ImportPages(const Context& context, uint8_t* pages, uint64_t bytes,
                                        uint32_t type_bits) {
  auto properties =
      Typed<VkMemoryHostPointerPropertiesEXT>(VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT);
  constexpr auto kKind = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  if (context.fn.vkGetMemoryHostPointerPropertiesEXT(context.device, kKind, pages, &properties) < 0)
    return Unimplemented("the driver refuses this host memory");
  const auto types =
      TypesFor(context.queries().memory, Memory::kDevice, type_bits & properties.memoryTypeBits);
  if (types.empty()) return Unimplemented("no memory type accepts host memory");
  auto host = Typed<VkImportMemoryHostPointerInfoEXT>(
      VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  host.handleType = kKind;
  host.pHostPointer = pages;
  auto info = Typed<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  info.pNext = &host;
  info.allocationSize = bytes;
  info.memoryTypeIndex = types[0];
  auto memory = context.Make<OwnedMemory>(info);
  if (!memory.ok())
    return Unimplemented("the driver cannot import host memory: {}", Message(memory.status()));
  return memory;
}

}  // namespace

VulkanBuffer::VulkanBuffer(ContextRef context) : context_(std::move(context)) {
  static std::atomic<uint64_t> next{1};
  id_ = next.fetch_add(1, std::memory_order_relaxed);
}

VulkanBuffer::Place VulkanBuffer::At(uint64_t offset) const {
  const uint64_t at = base_ + offset, piece = at / piece_bytes_;
  const uint64_t begin = piece * piece_bytes_;
  return {pieces_[piece].buffer.get(), at - begin,
          std::min(piece_bytes_, end_ - begin) - (at - begin)};
}

absl::StatusOr<VkMemoryRequirements> VulkanBuffer::AddPiece(uint64_t bytes, const void* next) {
  auto info = Typed<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.pNext = next;
  info.size = bytes;
  // Imported memory holds what kernels read alone.
  info.usage = next == nullptr ? kUsage | kParameterUsage : kUsage;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  FORGE_ASSIGN_OR_RETURN(OwnedBuffer buffer, context_->Make<OwnedBuffer>(info));
  VkMemoryRequirements needs;
  context_->fn.vkGetBufferMemoryRequirements(context_->device, buffer.get(), &needs);
  pieces_.push_back({std::move(buffer), nullptr});
  return needs;
}

absl::Status VulkanBuffer::Bind(VkDeviceMemory memory, uint64_t offset) const {
  return context_->Check(context_->fn.vkBindBufferMemory(
                             context_->device, pieces_.back().buffer.get(), memory, offset),
                         "vkBindBufferMemory");
}

absl::Status VulkanBuffer::AddPieces(const HeapRef& heap) {
  for (uint64_t at = 0; at < end_; at += piece_bytes_) {
    FORGE_ASSIGN_OR_RETURN(const VkMemoryRequirements needs,
                           AddPiece(std::min(piece_bytes_, end_ - at), nullptr));
    Piece& piece = pieces_.back();
    FORGE_ASSIGN_OR_RETURN(piece.memory, Heap::Allocate(heap, kind_, needs));
    FORGE_RETURN_IF_ERROR(Bind(piece.memory->memory(), piece.memory->offset));
    context_->SetName(VK_OBJECT_TYPE_BUFFER, reinterpret_cast<uint64_t>(piece.buffer.get()),
                      fmt::format("buffer {} ({} bytes)", id_, size_));
  }
  return absl::OkStatus();
}

absl::StatusOr<VulkanBufferRef> VulkanBuffer::Create(const HeapRef& heap, Memory kind,
                                                     uint64_t bytes) {
  const Context& context = *heap->context();
  FORGE_RETURN_IF_ERROR(context.Health());
  const uint64_t most = heap->largest_allocation();
  if (bytes > most && kind != Memory::kDevice)
    return ResourceExhausted("a mapped buffer of {} bytes is larger than the {} that {} allows",
                             bytes, most, context.queries().properties.deviceName);
  const auto part = static_cast<uint64_t>(codegen::PartBytes(context.caps()));
  if (bytes > context.queries().memory_bytes() || most < part)
    return ResourceExhausted("a buffer of {} bytes is larger than the memory of {}", bytes,
                             context.queries().properties.deviceName);
  VulkanBufferRef b(new VulkanBuffer(heap->context()));
  b->size_ = bytes;
  b->end_ = std::max<uint64_t>((bytes + kGranule - 1) / kGranule * kGranule, kGranule);
  b->piece_bytes_ = b->end_ <= most ? b->end_ : most / part * part;
  b->kind_ = kind;
  FORGE_RETURN_IF_ERROR(b->AddPieces(heap));
  return b;
}

absl::StatusOr<VulkanBufferRef> VulkanBuffer::Import(const HeapRef& heap, const Bytes& bytes) {
  const Context& context = *heap->context();
  FORGE_RETURN_IF_ERROR(context.Health());
  if (!context.abilities().host_import)
    return Unimplemented("VK_EXT_external_memory_host is absent");
  if (bytes.size() == 0) return Unimplemented("there is nothing to import");
  if (!context.queries().shares_memory())
    return Unimplemented("this device reads its own memory faster than host memory");
  const uint64_t page = context.queries().host_memory.minImportedHostPointerAlignment;
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const uint64_t base = address % page;
  // An operand begins at a multiple of kAlignment in its buffer, and so must this one in its pages.
  if (base % context.limits().minStorageBufferOffsetAlignment != 0)
    return Unimplemented("its address is not aligned to {} bytes",
                         context.limits().minStorageBufferOffsetAlignment);
  const uint64_t whole = (base + bytes.size() + page - 1) / page * page;
  if (whole > heap->largest_allocation()) return Unimplemented("it is larger than a buffer may be");
  VulkanBufferRef b(new VulkanBuffer(heap->context()));
  b->imported_ = bytes;
  b->size_ = bytes.size();
  b->base_ = base;
  b->end_ = b->piece_bytes_ = whole;
  auto external =
      Typed<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  FORGE_ASSIGN_OR_RETURN(const VkMemoryRequirements needs, b->AddPiece(whole, &external));
  if (needs.size > whole) return Unimplemented("the driver requires more memory than is given");
  FORGE_ASSIGN_OR_RETURN(b->imported_memory_,
                         ImportPages(context, reinterpret_cast<uint8_t*>(address - base), whole,
                                     needs.memoryTypeBits));
  FORGE_RETURN_IF_ERROR(b->Bind(b->imported_memory_.get(), 0));
  return b;
}

absl::StatusOr<std::span<uint8_t>> VulkanBuffer::Mapped() const {
  if (kind_ == Memory::kDevice)
    return InvalidArgument("only upload and readback buffers are mapped");
  if (mapped()->mapped() == nullptr)
    return Unavailable("the driver returned no address for mapped memory");
  return std::span<uint8_t>(mapped()->mapped(), size_);
}

absl::Status VulkanBuffer::Sync(bool flush) const {
  if (kind_ == Memory::kDevice || mapped()->coherent() || mapped()->mapped() == nullptr)
    return absl::OkStatus();
  auto range = Typed<VkMappedMemoryRange>(VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE);
  range.memory = mapped()->memory();
  range.offset = mapped()->offset;
  range.size = mapped()->size;
  const VolkDeviceTable& fn = context_->fn;
  if (flush)
    return context_->Check(fn.vkFlushMappedMemoryRanges(context_->device, 1, &range),
                           "vkFlushMappedMemoryRanges");
  return context_->Check(fn.vkInvalidateMappedMemoryRanges(context_->device, 1, &range),
                         "vkInvalidateMappedMemoryRanges");
}

}  // namespace forge::vk
