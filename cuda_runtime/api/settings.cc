// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/api/settings.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "base/platform.h"

namespace forge::cuda {

absl::StatusOr<Settings> Settings::FromEnvironment() {
  Settings s;
  FORGE_ASSIGN_OR_RETURN(s.nvtx, EnvironmentSwitch("FORGE_CUDA_NVTX"));
  const std::string text = Environment("FORGE_CUDA_DISABLE").value_or("");
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ','))) {
    if (word.empty()) continue;
    const bool all = word == "all";
    if (!all && word != "cublaslt" && word != "graphs")
      return InvalidArgument(
          "FORGE_CUDA_DISABLE names '{}', which is not a feature; the features are all, cublaslt, "
          "graphs",
          word);
    if (all || word == "cublaslt") s.cublaslt = false;
    if (all || word == "graphs") s.graphs = false;
  }
  return s;
}

}  // namespace forge::cuda
