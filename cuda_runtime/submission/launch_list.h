// SPDX-License-Identifier: Apache-2.0
// Steps with their buffers and numbers filled in: kernel launches and copies, in order.
#pragma once
#include "cuda_runtime/kernels/program.h"
#include "cuda_runtime/memory/buffer.h"

namespace forge::cuda {

struct BoundLaunch {
  CuFunction function = nullptr;
  const Product* product = nullptr;  // instead of a function
  Product::Operands operands;        // of the product
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t shared_bytes = 0;
  std::vector<uint64_t> arguments;  // pointers and scalars, each in the first bytes of a word
};
struct BoundCopy {
  CuAddress from = 0, to = 0;
  uint64_t bytes = 0;
};
struct BoundStep {
  std::string label;
  std::vector<BoundLaunch> launches;
  std::optional<BoundCopy> copy;
};

struct LaunchListInput {
  const ContextRef& context;
  std::span<const Step> steps;
  std::span<const CudaBufferRef> slots;  // null where no step needs the slot
  const ir::Bindings& values;            // of step symbols
};

// What a submission hands to the driver. Immutable; must outlive its submissions.
class LaunchList {
 public:
  // Fills in the steps.
  //   errors: OutOfRange (an operand outside its buffer), InvalidArgument, each with the label of
  //   the step
  static absl::StatusOr<std::shared_ptr<const LaunchList>> Make(const LaunchListInput& input);
  // A single copy.
  //   errors: OutOfRange, InvalidArgument (overlapping ranges)
  static absl::StatusOr<std::shared_ptr<const LaunchList>> OfCopy(const Device::CopyRange& range,
                                                                  const CudaBuffer& from,
                                                                  const CudaBuffer& to);

  std::span<const BoundStep> steps() const { return steps_; }
  size_t launches() const;  // and copies
  // Hands a step to the driver; its work runs behind that of earlier calls. The context is current.
  //   errors: those of the driver, with the label of the step
  static absl::Status Launch(Context& context, CuStream stream, const BoundStep& step);

 private:
  std::vector<BoundStep> steps_;
  std::vector<ProgramRef> programs_;  // keep the modules loaded
};
using LaunchListRef = std::shared_ptr<const LaunchList>;

}  // namespace forge::cuda
