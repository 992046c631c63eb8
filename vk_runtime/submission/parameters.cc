// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/submission/parameters.h"

#include <cstring>

namespace forge::vk {

absl::StatusOr<std::shared_ptr<ParameterBuffer>> ParameterBuffer::Create(const HeapRef& heap,
                                                                         uint64_t bytes) {
  std::shared_ptr<ParameterBuffer> p(new ParameterBuffer);
  p->heap_ = heap;
  FORGE_ASSIGN_OR_RETURN(p->buffer_, VulkanBuffer::Create(heap, Memory::kDevice, bytes));
  return p;
}

absl::StatusOr<ParameterBuffer::Copy> ParameterBuffer::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Copy copy = std::move(free_.back());
      free_.pop_back();
      return copy;
    }
  }
  Copy copy;
  FORGE_ASSIGN_OR_RETURN(copy.from, VulkanBuffer::Create(heap_, Memory::kUpload, buffer_->size()));
  FORGE_ASSIGN_OR_RETURN(
      copy.recording,
      Recording::OfCopy(heap_->context(), {*copy.from, 0, *buffer_, 0, buffer_->size()}));
  return copy;
}

absl::StatusOr<RecordingRef> ParameterBuffer::Write(std::span<const uint32_t> words) {
  FORGE_CHECK(words.size_bytes() == buffer_->size());
  FORGE_ASSIGN_OR_RETURN(Copy copy, Take());
  FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> mapped, copy.from->Mapped());
  std::memcpy(mapped.data(), words.data(), words.size_bytes());
  FORGE_RETURN_IF_ERROR(copy.from->Flush());
  const Recording* recording = copy.recording.get();
  return RecordingRef(recording,
                      [self = shared_from_this(), copy = std::move(copy)](const Recording*) {
                        const std::lock_guard lock(self->mutex_);
                        self->free_.push_back(copy);
                      });
}

}  // namespace forge::vk
