// SPDX-License-Identifier: Apache-2.0
// Command buffers of steps, for one set of buffers and numbers.
#pragma once
#include "vk_runtime/memory/buffer.h"
#include "vk_runtime/pipelines/program.h"

namespace forge::vk {

// A number that a recording reads at each submission: the value of an expression over step symbols.
struct Parameter {
  static constexpr uint32_t kNoWord = UINT32_MAX;  // only checked, not stored
  ir::Dim value;
  uint32_t word = kNoWord;          // index in the parameter buffer
  int64_t least = 0, most = 0;      // allowed range
  const std::string* of = nullptr;  // label of the step
};

struct RecordInput {
  const ContextRef& context;
  std::span<const Step> steps;
  std::span<const VulkanBufferRef> slots;  // null where no step needs the slot
  // Values of step symbols. When empty, scalars and grids that depend on them are parameters, and
  // operands are bound at their largest size.
  const ir::Bindings& values;
  const VulkanBuffer& nothing;     // bound for operands without bytes
  const VulkanBuffer* parameters;  // of ParameterBytes() bytes; null: none
  bool timestamps;
  bool overlaps;  // may be submitted while an earlier submission still runs
};

// Bytes of the parameter buffer for a recording of these steps; 0: none is needed.
uint64_t ParameterBytes(std::span<const Step> steps);
// True when one recording serves all step values: no operand offset, and no scalar of a kernel that
// reads no parameters, depends on them.
bool ServesAllStepValues(std::span<const Step> steps);

struct CopyBytes {
  const VulkanBuffer& from;
  uint64_t at;
  const VulkanBuffer& to;
  uint64_t to_at, bytes;
};

using RecordingRef = std::shared_ptr<const class Recording>;

// Command buffers and the objects they use; must outlive its submissions.
class Recording {
 public:
  // Records steps.
  //   errors: OutOfRange (an operand outside its buffer), InvalidArgument, each with the label of
  //   the step
  static absl::StatusOr<RecordingRef> Make(const RecordInput& input);
  // Records a copy.
  //   errors: OutOfRange, InvalidArgument (overlapping ranges)
  static absl::StatusOr<RecordingRef> OfCopy(const ContextRef& context, const CopyBytes& copy);
  std::span<const VkCommandBuffer> pieces() const { return pieces_; }
  int barriers() const { return barriers_; }
  std::span<const Parameter> parameters() const { return parameters_; }
  // Times of the steps of the last run, which must have finished.
  //   errors: Unimplemented (the queue has no timestamps)
  absl::StatusOr<std::vector<StepTime>> Times() const;

 private:
  friend class Recorder;
  Recording() = default;
  ContextRef context_;
  OwnedCommandPool commands_;
  OwnedDescriptorPool descriptors_;
  OwnedQueryPool queries_;
  std::vector<VkCommandBuffer> pieces_;  // allocated from commands_
  std::vector<ProgramRef> programs_;     // keep the pipelines alive
  std::vector<Parameter> parameters_;
  uint32_t steps_ = 0;
  int barriers_ = 0;
};

}  // namespace forge::vk
