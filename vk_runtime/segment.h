// SPDX-License-Identifier: Apache-2.0
// Steps that are recorded once and replayed, and recorded again for other buffers or numbers.
#pragma once
#include "vk_runtime/queue.h"

namespace forge::vk {

class VulkanSegment final : public Segment {
 public:
  VulkanSegment(const SegmentSpec& spec, ContextRef context, VulkanBufferRef nothing);
  int barriers() const override { return barriers_; }

  // The work for these arguments: those of an earlier submission where they are the same.
  //   errors: InvalidArgument, OutOfRange with the step's label
  absl::StatusOr<Job> Prepare(const SubmitArgs& args);
  // What was submitted; `last` is its point's value.
  void Submitted(RecordingRef recording, uint64_t last);

  const RecordingRef& last_recording() const { return last_recording_; }
  uint64_t last_value() const { return last_value_; }

 private:
  struct Entry {
    std::vector<uint64_t> key;  // ids of the slots' buffers, then step values
    RecordingRef recording;
  };
  absl::StatusOr<std::vector<VulkanBufferRef>> CheckSlots(const SubmitArgs& args) const;
  absl::StatusOr<RecordingRef> Find(const std::vector<VulkanBufferRef>& slots,
                                    std::span<const int64_t> values);

  ContextRef context_;
  VulkanBufferRef nothing_;
  std::vector<Step> steps_;
  std::vector<SlotSpec> slots_;
  std::vector<ir::SymbolRef> step_symbols_;
  std::vector<bool> written_;  // slots that a step writes
  bool timestamps_;
  std::vector<Entry> entries_;  // the one used last at the end
  int barriers_ = 0;
  RecordingRef last_recording_;
  uint64_t last_value_ = 0;
};

}  // namespace forge::vk
