// SPDX-License-Identifier: Apache-2.0
// Steps that are recorded once and submitted repeatedly. Other buffers or step values need another
// launch list.
#pragma once
#include "cuda_runtime/submission/queue.h"

namespace forge::cuda {

class CudaSegment final : public Segment {
 public:
  // graphs: replays are handed to the driver as CUDA graphs
  CudaSegment(const SegmentSpec& spec, ContextRef context, bool graphs);
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
    std::shared_ptr<const OwnedGraphExec> graph;  // from its second submission on
    bool submitted = false;
  };
  absl::StatusOr<Entry*> Find(const std::vector<CudaBufferRef>& slots,
                              std::span<const int64_t> values);
  // The graph of a list that comes again, which makes up for its capture; null: step by step.
  absl::StatusOr<std::shared_ptr<const OwnedGraphExec>> GraphOf(Entry& entry,
                                                                const SubmitArgs& args,
                                                                Queue& queue) const;

  ContextRef context_;
  std::vector<Step> steps_;
  std::vector<SlotSpec> slots_;
  std::vector<ir::SymbolRef> step_symbols_;
  bool timestamps_, graphs_;
  std::vector<Entry> entries_;  // most recently used last
  int recordings_ = 0;
  std::shared_ptr<StepEvents> times_;  // of the last submission
  uint64_t last_value_ = 0;            // 0: none
};

}  // namespace forge::cuda
