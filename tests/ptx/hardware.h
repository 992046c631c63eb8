// SPDX-License-Identifier: Apache-2.0
// The same kernels on a GPU: what tests expect of the interpreter is to be what hardware does.
#pragma once
#include "tests/ptx/runner.h"

namespace forge::ptx {

// FORGE_PTX_ON=hardware: RunPtx runs on the first CUDA device instead of the interpreter.
bool RunsOnHardware();
// As RunPtx, without findings and statistics; `order` and `seed` are the GPU's own.
//   errors: those of the driver
absl::Status RunOnHardware(const std::string& text, const std::string& kernel,
                           const RunOptions& options, std::vector<Argument> arguments);

}  // namespace forge::ptx
