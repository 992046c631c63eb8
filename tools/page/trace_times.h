// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "runtime/plan/executable.h"
#include "tools/page/model_page.h"

namespace forge::tools {

// Adds the times of a trace that forge-run --profile wrote to the steps of the same plan.
//   errors: NotFound, DataLoss (not a trace), InvalidArgument (a trace of another plan)
absl::Status AddTimes(const std::filesystem::path& trace, const Executable& e, PageSteps& steps);

}  // namespace forge::tools
