// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/pipelines/fixed_launch.h"

#include <optional>

#include "ir/ops/movement/transpose.h"
#include "shaders/transpose.spv.h"

namespace forge::vk {
namespace {

constexpr int64_t kTile = 32;  // of transpose.comp

}  // namespace

std::optional<FixedLaunch> TransposeShader(int64_t batch, int64_t rows, int64_t cols,
                                           const codegen::Caps& caps) {
  FixedLaunch h;
  h.code = {.name = "transpose_tiled_32x32",
            .spirv = {std::begin(kTransposeSpv), std::end(kTransposeSpv)},
            .operands = 2,
            .scalars = 2};
  h.grid = {(cols + kTile - 1) / kTile, (rows + kTile - 1) / kTile, batch};
  for (size_t axis = 0; axis < 3; ++axis)
    if (h.grid[axis] > caps.max_grid()[axis]) return std::nullopt;
  if (rows != 0 && cols != 0 && batch > INT32_MAX / rows / cols) return std::nullopt;
  if (4 * batch * rows * cols > caps.max_operand_bytes) return std::nullopt;
  h.bytes = 8.0 * static_cast<double>(batch * rows * cols);
  h.scalars = {static_cast<int32_t>(rows), static_cast<int32_t>(cols)};
  return h;
}

std::optional<FixedLaunch> FindHandWritten(const ir::AnyOp& op, ir::TypeSpan in,
                                           const codegen::Caps& caps) {
  // A permutation that swaps two neighbouring runs of axes behind a run that stays is a
  // transposition of [batch, rows, cols].
  const auto* transpose = op.As<ir::Transpose>();
  // On a CPU a barrier costs more than a strided load saves.
  if (transpose == nullptr || caps.runs_on_cpu) return std::nullopt;
  const ir::Type& x = in[0];
  if (!x.is_constant() || x.encoding() || BitWidth(x.dtype()) != 32) return std::nullopt;
  const absl::StatusOr<ir::Dim> bytes = x.bytes();
  if (!bytes.ok() || !bytes->is_constant()) return std::nullopt;  // they overflow
  const std::vector<int64_t>& p = transpose->permutation;
  const auto rank = static_cast<int64_t>(p.size());
  int64_t stay = 0;
  while (stay < rank && p[stay] == stay) ++stay;
  if (stay == rank) return std::nullopt;
  const int64_t split = p[stay];  // the first axis of the second run
  for (int64_t i = stay; i < rank; ++i)
    if (p[i] != stay + (split - stay + i - stay) % (rank - stay)) return std::nullopt;
  const std::vector<int64_t> shape = ir::Constants(x.shape());
  const auto product = [&](int64_t from, int64_t to) {
    int64_t n = 1;
    for (int64_t i = from; i < to; ++i) n *= shape[i];
    return n;
  };
  return TransposeShader(product(0, stay), product(stay, split), product(split, rank), caps);
}

absl::StatusOr<ProgramRef> MakeProgram(const FixedLaunch& fixed, PipelineStore& pipelines) {
  const KernelCode& code = fixed.code;
  PlannedLaunch launch;
  FORGE_ASSIGN_OR_RETURN(launch.pipeline, pipelines.Get(code));
  launch.name = code.name;
  for (uint32_t i = 0; i < code.operands; ++i)
    launch.operands.push_back({.step_operand = i, .writes = i + 1 == code.operands});
  for (int32_t s : fixed.scalars) launch.scalars.push_back({.constant = s});
  launch.scalars.resize(code.scalars);
  for (int a = 0; a < 3; ++a) launch.grid[a].constant = fixed.grid[a];
  launch.seconds = fixed.bytes / launch.pipeline->context->rates().bytes;
  VulkanProgram::Parts parts;
  parts.kernel = code.name;
  parts.seconds = launch.seconds;
  parts.launches.push_back(std::move(launch));
  parts.artifacts = [name = code.name, spirv = code.spirv] {
    return std::vector<Artifact>{SpirvArtifact(name, spirv)};
  };
  return ProgramRef(std::make_shared<VulkanProgram>(std::move(parts)));
}

}  // namespace forge::vk
