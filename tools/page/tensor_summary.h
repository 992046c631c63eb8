// SPDX-License-Identifier: Apache-2.0
// Summary statistics of a tensor.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "ir/type/host_value.h"

namespace forge::tools {

struct TensorSummary {
  int64_t elements = 0;
  int64_t looked_at = 0;  // sampled at a regular interval in large tensors
  int64_t zeros = 0, not_finite = 0;
  double min = 0, max = 0, mean = 0, deviation = 0;  // of the finite sampled elements
  std::vector<int64_t> histogram;  // equal bins from min to max; empty when no element is finite
  std::vector<double> first;
};

// Summarises a tensor from at most about four million elements.
//   v: bool, integers or floats     bins, first: lengths of the lists
TensorSummary Summarise(const ir::HostValue& v, int bins = 40, int first = 12);

// {elements, looked_at, zeros, not_finite, min, max, mean, deviation, histogram, first}; NaN and
// infinities, which JSON lacks, as text.
nlohmann::json ToJson(const TensorSummary& s);

}  // namespace forge::tools
