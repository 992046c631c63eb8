// SPDX-License-Identifier: Apache-2.0
// Steps turned into command buffers, for one choice of buffers and numbers.
#pragma once
#include "vk_runtime/memory/buffer.h"
#include "vk_runtime/pipelines/program.h"

namespace forge::vk {

// A number that a recording reads at each replay, by the value of an expression over step symbols.
struct Parameter {
  static constexpr uint32_t kNoWord = UINT32_MAX;  // it is checked alone
  ir::Dim value;
  uint32_t word;          // of the parameter buffer
  int64_t least, most;    // that it may be
  const std::string* of;  // the label of a step
};

struct RecordInput {
  const ContextRef& context;
  std::span<const Step> steps;
  std::span<const VulkanBufferRef> slots;  // null where no step needs the slot
  // Of step symbols; where it is empty, scalars and grids that depend on them are parameters, and
  // operands are bound as large as they can be.
  const ir::Bindings& values;
  const VulkanBuffer& nothing;     // bound for operands without bytes
  const VulkanBuffer* parameters;  // of ParameterBytes; null: none
  bool timestamps;
  bool overlaps;  // may be submitted while an earlier submission of it still runs
};

// Of the parameter buffer that a recording of these steps needs: 0: none.
uint64_t ParameterBytes(std::span<const Step> steps);
// Can one recording serve all step values? Not where the place of an operand depends on them, or
// a scalar of a kernel that reads no parameters.
bool ServesAllStepValues(std::span<const Step> steps);

struct CopyBytes {
  const VulkanBuffer& from;
  uint64_t at;
  const VulkanBuffer& to;
  uint64_t to_at, bytes;
};

using RecordingRef = std::shared_ptr<const class Recording>;

// Owns what it recorded; must outlive its submission.
class Recording {
 public:
  // errors: OutOfRange (an operand outside its buffer), InvalidArgument, each with the step's label
  static absl::StatusOr<RecordingRef> Make(const RecordInput& input);
  // A copy by itself, of any bytes.  errors: OutOfRange, InvalidArgument (overlapping ranges)
  static absl::StatusOr<RecordingRef> OfCopy(const ContextRef& context, const CopyBytes& copy);
  std::span<const VkCommandBuffer> pieces() const { return pieces_; }
  int barriers() const { return barriers_; }
  std::span<const Parameter> parameters() const { return parameters_; }
  // Of the last run, which must be done.  errors: Unimplemented (this queue has no timestamps)
  absl::StatusOr<std::vector<StepTime>> Times() const;

 private:
  friend class Recorder;
  Recording() = default;
  ContextRef context_;
  OwnedCommandPool commands_;
  OwnedDescriptorPool descriptors_;
  OwnedQueryPool queries_;
  std::vector<VkCommandBuffer> pieces_;  // of commands_
  std::vector<ProgramRef> programs_;     // their pipelines are in the command buffers
  std::vector<Parameter> parameters_;
  uint32_t steps_ = 0;
  int barriers_ = 0;
};

}  // namespace forge::vk
