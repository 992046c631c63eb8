// SPDX-License-Identifier: Apache-2.0
// A tensor in a few numbers.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "ir/type/host_value.h"

namespace forge::tools {

struct TensorSummary {
  int64_t elements = 0;
  int64_t looked_at = 0;  // every k-th, where there are very many
  int64_t zeros = 0, not_finite = 0;
  double min = 0, max = 0, mean = 0, deviation = 0;  // of the finite ones looked at
  std::vector<int64_t> histogram;  // equal bins from min to max; empty when nothing is finite
  std::vector<double> first;
};

// Looks at some four million elements at most.
//   v: bool, integers or floats     bins, first: how many
TensorSummary Summarise(const ir::HostValue& v, int bins = 40, int first = 12);

// {elements, looked_at, zeros, not_finite, min, max, mean, deviation, histogram, first}; NaN and
// infinities, which JSON lacks, as text.
nlohmann::json ToJson(const TensorSummary& s);

}  // namespace forge::tools
