// SPDX-License-Identifier: Apache-2.0
#include "tests/support/case_seeds.h"

#include <charconv>
#include <numeric>
#include <string_view>

#include "base/platform.h"
#include "base/status.h"

namespace forge {

std::vector<uint64_t> CaseSeeds() {
  constexpr uint64_t kMost = 1000;
  const auto text = Environment("FORGE_CASE_SEEDS");
  if (!text) return {0};
  uint64_t first = 0, last = 0;
  const char* end = text->data() + text->size();
  const auto [dots, error] = std::from_chars(text->data(), end, first);
  const bool two = error == std::errc() && std::string_view(dots, end - dots).starts_with("..");
  FORGE_CHECK(two && std::from_chars(dots + 2, end, last).ptr == end);
  FORGE_CHECK(first <= last && last - first < kMost);
  std::vector<uint64_t> seeds(last - first + 1);
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

}  // namespace forge
