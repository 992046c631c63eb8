// SPDX-License-Identifier: Apache-2.0
// Steps that are recorded once and submitted repeatedly. Other buffers or step values need another
// launch list.
#pragma once
#include "cuda_runtime/submission/queue.h"

namespace forge::cuda {

class CudaSegment final : public Segment {
 public:
  CudaSegment(const SegmentSpec& spec, ContextRef context);
  int recordings() const override { return recordings_; }

  // Returns the job for these arguments. Reuses the list of an earlier submission with equal
  // arguments.
  //   errors: InvalidArgument, OutOfRange with the label of the step
  absl::StatusOr<Job> Prepare(const SubmitArgs& args, Queue& queue);
  // Times of the steps of the last submission, which must have finished.
  //   errors: InvalidArgument (recorded without timestamps)
  absl::StatusOr<std::vector<StepTime>> Times() const;
  uint64_t last_value() const { return last_value_; }
  void Submitted(uint64_t value) { last_value_ = value; }

 private:
  struct Entry {
    std::vector<uint64_t> key;  // ids of the buffers in the slots, then step values
    LaunchListRef list;
  };
  absl::StatusOr<LaunchListRef> Find(const std::vector<CudaBufferRef>& slots,
                                     std::span<const int64_t> values);

  ContextRef context_;
  std::vector<Step> steps_;
  std::vector<SlotSpec> slots_;
  std::vector<ir::SymbolRef> step_symbols_;
  bool timestamps_;
  std::vector<Entry> entries_;  // most recently used last
  int recordings_ = 0;
  std::shared_ptr<StepEvents> times_;  // of the last submission
  uint64_t last_value_ = 0;            // 0: none
};

}  // namespace forge::cuda
