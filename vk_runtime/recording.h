// SPDX-License-Identifier: Apache-2.0
// Steps turned into command buffers, for one choice of buffers and numbers.
#pragma once
#include "vk_runtime/buffer.h"
#include "vk_runtime/program.h"

namespace forge::vk {

struct RecordInput {
  const ContextRef& context;
  std::span<const Step> steps;
  std::span<const VulkanBufferRef> slots;  // null where no step needs the slot
  const ir::Bindings& values;              // of step symbols
  const VulkanBuffer& nothing;             // bound for operands without bytes
  bool timestamps;
};

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
  uint32_t steps_ = 0;
  int barriers_ = 0;
};

}  // namespace forge::vk
