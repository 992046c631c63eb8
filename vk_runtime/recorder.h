// SPDX-License-Identifier: Apache-2.0
// Writes command buffers: used by Recording::Make alone.
#pragma once
#include "vk_runtime/hazards.h"
#include "vk_runtime/recording.h"

namespace forge::vk {

class Recorder {
 public:
  Recorder(const RecordInput& input, Recording& out)
      : in_(input),
        out_(out),
        context_(*input.context),
        fn_(context_.fn),
        budget_(static_cast<double>(context_.settings().piece_nanoseconds) * 1e-9) {}
  absl::Status Run();
  absl::Status RunCopy(const CopyBytes& copy);

 private:
  // An operand with its numbers filled in.
  struct Bound {
    const VulkanBuffer* buffer = nullptr;  // null: absent or empty
    uint64_t offset = 0, bytes = 0;        // in the VkBuffer
  };
  absl::Status MakePools();
  absl::Status BeginPiece();
  absl::Status EndPiece();
  absl::Status RecordStep(const Step& step);
  absl::Status RecordProgram(const Step& step, const VulkanProgram& program,
                             std::span<const Bound> operands);
  absl::Status RecordLaunch(const PlannedLaunch& launch, std::span<const Bound> operands,
                            std::span<const int64_t> scalars);
  absl::Status RecordCopy(std::span<const Bound> operands);
  absl::StatusOr<Bound> Bind(const Operand& o) const;
  absl::StatusOr<Bound> Part(const LaunchOperand& o, std::span<const Bound> operands) const;
  absl::StatusOr<VkDescriptorSet> Describe(const PlannedLaunch& launch,
                                           std::span<const Bound> operands) const;
  void Use(const PlannedLaunch& launch, VkDescriptorSet set);
  struct Grid {
    std::array<uint32_t, 3> size, piece;  // workgroups: all, and of one dispatch
    double piece_seconds;
  };
  Grid Divide(const PlannedLaunch& launch, const std::array<int64_t, 3>& size) const;
  struct Dispatches {
    const PlannedLaunch& launch;
    VkDescriptorSet set;
    const Grid& grid;
  };
  // Dispatches the grid piece by piece, cutting submissions where the time budget is spent.
  absl::Status Dispatch(const Dispatches& d, std::span<const int32_t> constants);
  void Fence(std::span<const Access> next);
  void Barrier(VkAccessFlags from, VkAccessFlags to, VkPipelineStageFlags after,
               VkPipelineStageFlags before);
  void Stamp(uint32_t query);
  // A label spans the pieces that a step is cut into, and begins and ends in each of them: drivers
  // crash at an end without a beginning.
  void BeginLabel(const std::string& label);
  void EndLabel();
  void ShowLabel();
  void HideLabel();

  const RecordInput& in_;
  Recording& out_;
  const Context& context_;
  const VolkDeviceTable& fn_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  Hazards hazards_;
  const double budget_;       // seconds of one submission
  std::string label_;         // of the step in progress
  double piece_seconds_ = 0;  // estimated work in the open piece
};

}  // namespace forge::vk
