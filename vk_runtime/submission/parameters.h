// SPDX-License-Identifier: Apache-2.0
// Parameters that a recording reads at each submission: scalars and grids that depend on step
// values, in a small device buffer.
#pragma once
#include "vk_runtime/submission/recording.h"

namespace forge::vk {

// The parameter buffer of a recording. May be used from any thread.
class ParameterBuffer : public std::enable_shared_from_this<ParameterBuffer> {
 public:
  // Allocates a buffer.
  //   errors: ResourceExhausted
  static absl::StatusOr<std::shared_ptr<ParameterBuffer>> Create(const HeapRef& heap,
                                                                 uint64_t bytes);
  const VulkanBuffer& buffer() const { return *buffer_; }
  // Returns a recording that copies `words` to the device; it is submitted before the steps that
  // read them. Its memory is reused once the result and its copies are destroyed.
  //   errors: ResourceExhausted, Unavailable (the driver maps no memory)
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
