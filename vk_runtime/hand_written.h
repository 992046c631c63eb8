// SPDX-License-Identifier: Apache-2.0
// The kernels of shaders/: algorithms that no schedule expresses well.
#pragma once
#include "codegen/caps.h"
#include "ir/ops/op.h"
#include "vk_runtime/program.h"

namespace forge::vk {

// A shader with its numbers: binding i is operand i of the node, then its results.
struct HandWritten {
  std::string name;
  std::span<const uint32_t> spirv;
  uint32_t operands = 0;
  uint32_t subgroup = 0;  // required size; 0: any
  std::vector<int32_t> scalars;
  std::array<int64_t, 3> grid{1, 1, 1};
  double bytes = 0;  // moved
};

// The shader for a node whose types are bound, if there is one that beats a schedule on a device
// with these capabilities.
std::optional<HandWritten> FindHandWritten(const ir::AnyOp& op, ir::TypeSpan in,
                                           const codegen::Caps& caps);

// Swaps the last two axes of [batch, rows, cols] elements of 4 bytes, tile by tile through shared
// memory. Nothing when the grid or an index would not fit.
std::optional<HandWritten> TransposeShader(int64_t batch, int64_t rows, int64_t cols,
                                           const codegen::Caps& caps);

// errors: as PipelineStore::Get
absl::StatusOr<ProgramRef> MakeProgram(const HandWritten& h, PipelineStore& pipelines,
                                       const Rates& rates);

}  // namespace forge::vk
