// SPDX-License-Identifier: Apache-2.0
// Steps that are recorded once and submitted repeatedly; other buffers need another recording. Step
// values are parameters of a recording, except where the offset of an operand depends on one.
#pragma once
#include "vk_runtime/submission/parameters.h"
#include "vk_runtime/submission/queue.h"

namespace forge::vk {

class VulkanSegment final : public Segment {
 public:
  VulkanSegment(const SegmentSpec& spec, HeapRef heap, VulkanBufferRef nothing);
  int barriers() const override { return barriers_; }
  int recordings() const override { return recordings_; }

  // Returns the job for these arguments. Reuses the recording of an earlier submission with equal
  // arguments.
  //   errors: InvalidArgument, OutOfRange with the label of the step
  absl::StatusOr<Job> Prepare(const SubmitArgs& args, Queue& queue);
  // Notes a submission.
  //   last: the value of its point
  void Submitted(RecordingRef recording, uint64_t last);

  const RecordingRef& last_recording() const { return last_recording_; }
  uint64_t last_value() const { return last_value_; }

 private:
  struct Entry {
    std::vector<uint64_t> key;  // ids of the buffers in the slots, then recorded step values
    RecordingRef recording;
    std::shared_ptr<ParameterBuffer> parameters;  // null: there are no parameters
    bool overlaps = false;
    uint64_t last = 0;  // value of its last submission
  };
  // Moves the entry for these arguments to the end of entries_, and records it where no reusable
  // entry exists.
  absl::Status Find(const std::vector<VulkanBufferRef>& slots, std::span<const int64_t> values,
                    Queue& queue);
  absl::Status Record(const std::vector<VulkanBufferRef>& slots, std::span<const int64_t> values,
                      Entry& entry);
  ir::Bindings Bindings(std::span<const int64_t> values) const;
  absl::StatusOr<RecordingRef> WriteParameters(const Entry& entry,
                                               std::span<const int64_t> values) const;

  HeapRef heap_;
  const Context* context_;
  VulkanBufferRef nothing_;
  std::vector<Step> steps_;
  std::vector<SlotSpec> slots_;
  std::vector<ir::SymbolRef> step_symbols_;
  std::vector<bool> written_;  // slots that a step writes
  bool timestamps_;
  bool serves_all_;  // one recording serves all step values
  uint64_t parameter_bytes_;
  std::vector<Entry> entries_;  // most recently used last
  int barriers_ = 0, recordings_ = 0;
  RecordingRef last_recording_;
  uint64_t last_value_ = 0;
};

}  // namespace forge::vk
