// SPDX-License-Identifier: Apache-2.0
// JSON descriptions of a run and its results.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "runtime/session.h"

namespace forge::tools {

// The content of Explain: {device, steps [{number, label, op, kernel, types, dispatches}], memory};
// with `gaps` also the reasons why steps are not fused [{from, to, why}].
nlohmann::json PlanJson(const Session& session, bool gaps);

// The outputs: [{name, dtype, shape, file}]; with `values` also `summary`, for numbers.
//   files: one for each output, or none
nlohmann::json OutputsJson(const std::vector<NamedTensor>& outputs,
                           const std::vector<std::filesystem::path>& files, bool values);

}  // namespace forge::tools
