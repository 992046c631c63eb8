// SPDX-License-Identifier: Apache-2.0
// What a replayed recording reads anew each time: scalars of kernels and grids that depend on step
// values, in a small buffer on the device.
#pragma once
#include "vk_runtime/submission/recording.h"

namespace forge::vk {

// Any thread.
class ParameterBuffer : public std::enable_shared_from_this<ParameterBuffer> {
 public:
  // errors: ResourceExhausted
  static absl::StatusOr<std::shared_ptr<ParameterBuffer>> Create(const HeapRef& heap,
                                                                 uint64_t bytes);
  const VulkanBuffer& buffer() const { return *buffer_; }
  // The copy that brings these words to the device: to be submitted before what reads them. Its
  // memory is used again once the result and its copies are gone.
  //   errors: ResourceExhausted, Unavailable (the driver maps nothing)
  absl::StatusOr<RecordingRef> Write(std::span<const uint32_t> words);

 private:
  struct Copy {
    VulkanBufferRef from;
    RecordingRef recording;
  };
  ParameterBuffer() = default;
  absl::StatusOr<Copy> Take();

  HeapRef heap_;
  VulkanBufferRef buffer_;
  std::mutex mutex_;
  std::vector<Copy> free_;  // under mutex_
};

}  // namespace forge::vk
