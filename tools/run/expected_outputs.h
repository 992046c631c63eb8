// SPDX-License-Identifier: Apache-2.0
// Outputs against files, under tolerances that the caller gives.
#pragma once
#include <filesystem>
#include <vector>

#include "runtime/session.h"

namespace forge::tools {

// An element x agrees with r where |x - r| <= absolute + relative * |r|; NaN agrees with NaN, an
// infinity with itself.
struct Tolerance {
  double relative = 1e-5, absolute = 1e-5;
};

struct ExpectedOutput {
  std::string name;
  int64_t elements = 0, outside = 0;
  double max_abs = 0, max_rel = 0;
  int64_t worst = -1;         // the element furthest outside; -1: none is outside
  double have = 0, want = 0;  // there
};

// Compares each output with DIR/NAME.npy.
//   errors: NotFound and DataLoss (the file), Internal (its shape is another), those of FileNames
absl::StatusOr<std::vector<ExpectedOutput>> CompareWithFiles(
    const std::vector<NamedTensor>& outputs, const std::filesystem::path& folder, Tolerance t);

}  // namespace forge::tools
