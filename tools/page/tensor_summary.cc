// SPDX-License-Identifier: Apache-2.0
#include "tools/page/tensor_summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace forge::tools {
namespace {

constexpr int64_t kMostLookedAt = 4 << 20;

nlohmann::json Number(double v) {
  return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(fmt::format("{}", v));
}

}  // namespace

TensorSummary Summarise(const ir::HostValue& v, int bins, int first) {
  TensorSummary s{.elements = v.elements()};
  const int64_t stride = std::max<int64_t>(1, (s.elements + kMostLookedAt - 1) / kMostLookedAt);
  double sum = 0, squares = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < s.elements; i += stride) {
    const double x = v.f64(i);
    ++s.looked_at;
    s.zeros += x == 0;
    if (!std::isfinite(x)) {
      ++s.not_finite;
      continue;
    }
    s.min = finite == 0 ? x : std::min(s.min, x);
    s.max = finite == 0 ? x : std::max(s.max, x);
    sum += x;
    squares += x * x;
    ++finite;
  }
  for (int64_t i = 0; i < std::min<int64_t>(first, s.elements); ++i) s.first.push_back(v.f64(i));
  if (finite == 0) return s;
  const auto n = static_cast<double>(finite);
  s.mean = sum / n;
  s.deviation = std::sqrt(std::max(0.0, squares / n - s.mean * s.mean));
  s.histogram.assign(bins, 0);
  const double width = s.max - s.min;
  for (int64_t i = 0; i < s.elements; i += stride) {
    const double x = v.f64(i);
    if (!std::isfinite(x)) continue;
    const double share = width > 0 ? (x - s.min) / width : 0;
    ++s.histogram[std::clamp(static_cast<int>(share * bins), 0, bins - 1)];
  }
  return s;
}

nlohmann::json ToJson(const TensorSummary& s) {
  nlohmann::json first = nlohmann::json::array();
  for (double v : s.first) first.push_back(Number(v));
  return {{"elements", s.elements},   {"looked_at", s.looked_at},
          {"zeros", s.zeros},         {"not_finite", s.not_finite},
          {"min", Number(s.min)},     {"max", Number(s.max)},
          {"mean", Number(s.mean)},   {"deviation", Number(s.deviation)},
          {"histogram", s.histogram}, {"first", std::move(first)}};
}

}  // namespace forge::tools
