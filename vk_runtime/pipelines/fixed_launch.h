// SPDX-License-Identifier: Apache-2.0
// Single launches with fixed arguments: of the shaders in shaders/, which implement algorithms that
// no schedule expresses well, and of probe kernels.
#pragma once
#include "ir/op/op.h"
#include "vk_runtime/pipelines/program.h"

namespace forge::vk {

// A kernel with its arguments: binding i is operand i of the step, and the last operand is written.
struct FixedLaunch {
  KernelCode code;
  std::vector<int32_t> scalars = {};  // values of the scalars; missing ones are 0
  std::array<int64_t, 3> grid{1, 1, 1};
  double bytes = 0;  // bytes moved, for the estimated time
};

// Returns the shader for a node with bound types, if there is one that is faster than a schedule on
// a device with these capabilities.
std::optional<FixedLaunch> FindHandWritten(const ir::AnyOp& op, ir::TypeSpan in,
                                           const codegen::Caps& caps);

// Transposes the last two axes of [batch, rows, cols] elements of 4 bytes, tile by tile through
// shared memory. Nullopt when the grid or an index would exceed a limit.
std::optional<FixedLaunch> TransposeShader(int64_t batch, int64_t rows, int64_t cols,
                                           const codegen::Caps& caps);

// Compiles a launch to a program.
//   errors: as PipelineStore::Get
absl::StatusOr<ProgramRef> MakeProgram(const FixedLaunch& fixed, PipelineStore& pipelines);

}  // namespace forge::vk
