// SPDX-License-Identifier: Apache-2.0
// Comparison of outputs with files, within given tolerances.
#pragma once
#include <filesystem>
#include <vector>

#include "runtime/session.h"

namespace forge::tools {

// An element x agrees with r where |x - r| <= absolute + relative * |r|; NaN agrees with NaN, an
// infinity with the same infinity.
struct Tolerance {
  double relative = 1e-5, absolute = 1e-5;
};

struct ExpectedOutput {
  std::string name;
  int64_t elements = 0, outside = 0;
  double max_abs = 0, max_rel = 0;
  int64_t worst = -1;         // index of the element furthest outside the tolerance; -1: none
  double have = 0, want = 0;  // the values at `worst`
};

// Compares each output with DIR/NAME.npy.
//   errors: NotFound and DataLoss (the file), Internal (another shape), those of FileNames
absl::StatusOr<std::vector<ExpectedOutput>> CompareWithFiles(
    const std::vector<NamedTensor>& outputs, const std::filesystem::path& folder, Tolerance t);

}  // namespace forge::tools
