// SPDX-License-Identifier: Apache-2.0
// Single launches whose numbers are known: of the shaders/, which are algorithms that no schedule
// expresses well, and of kernels that are only tried.
#pragma once
#include "ir/op/op.h"
#include "vk_runtime/pipelines/program.h"

namespace forge::vk {

// A kernel with its numbers: binding i is operand i of the step, and the last one is written.
struct FixedLaunch {
  KernelCode code;
  std::vector<int32_t> scalars = {};  // as many as the kernel has, or the first of them; then 0
  std::array<int64_t, 3> grid{1, 1, 1};
  double bytes = 0;  // moved
};

// The shader for a node whose types are bound, if there is one that beats a schedule on a device
// with these capabilities.
std::optional<FixedLaunch> FindHandWritten(const ir::AnyOp& op, ir::TypeSpan in,
                                           const codegen::Caps& caps);

// Swaps the last two axes of [batch, rows, cols] elements of 4 bytes, tile by tile through shared
// memory. Nothing when the grid or an index would not fit.
std::optional<FixedLaunch> TransposeShader(int64_t batch, int64_t rows, int64_t cols,
                                           const codegen::Caps& caps);

// errors: as PipelineStore::Get
absl::StatusOr<ProgramRef> MakeProgram(const FixedLaunch& fixed, PipelineStore& pipelines);

}  // namespace forge::vk
