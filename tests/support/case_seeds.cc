// SPDX-License-Identifier: Apache-2.0
#include "tests/support/case_seeds.h"

#include <algorithm>
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

int CountFromEnvironment(const char* variable, int standard) {
  const auto text = Environment(variable);
  if (!text) return standard;
  int count = 0;
  const char* end = text->data() + text->size();
  FORGE_CHECK(std::from_chars(text->data(), end, count).ptr == end && count > 0);
  return count;
}

absl::StatusOr<std::vector<ir::ConcreteCase>> CasesInTurns(const ir::OpDef& def, uint64_t seed) {
  std::vector<ir::ConcreteCase> out;
  uint64_t turn = seed;
  for (const ir::Case& c : def.cases(def)) {
    if (!c.refuse.empty()) continue;
    FORGE_ASSIGN_OR_RETURN(std::vector<ir::ConcreteCase> types, ir::Concretize(c));
    const auto is_f32 = [](const ir::ConcreteCase& one) {
      return std::ranges::any_of(
          one.in, [](const ir::CaseOperand& o) { return o.type && o.type.dtype() == DType::kF32; });
    };
    const auto first = std::ranges::find_if(types, is_f32);
    if (first != types.end()) std::iter_swap(types.begin(), first);
    out.push_back(std::move(types[0]));
    if (types.size() > 1) out.push_back(std::move(types[1 + turn++ % (types.size() - 1)]));
  }
  return out;
}

}  // namespace forge
