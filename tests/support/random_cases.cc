// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_cases.h"

#include <map>
#include <random>

#include "tests/support/case_seeds.h"

namespace forge {
namespace {

constexpr int64_t kMostElementsOfCase = 4096;
constexpr int kAttempts = 8;

// Ones mostly stay, because they broadcast; some axes become empty.
int64_t DrawExtent(int64_t extent, std::mt19937_64& random) {
  const uint64_t draw = random() % 16;
  if (draw == 0) return 0;
  if (extent == 1 && draw < 12) return 1;
  return static_cast<int64_t>(1 + random() % (draw < 14 ? 9 : 40));
}

ir::ConcreteCase Varied(ir::ConcreteCase c, std::mt19937_64& random) {
  std::map<int64_t, int64_t> drawn;
  for (ir::CaseOperand& operand : c.in) {
    if (!operand.type) continue;
    operand.edges = false;  // whose place in rows would be another
    ir::Dims shape = operand.type.shape();
    for (ir::Dim& extent : shape) {
      const auto [at, added] = drawn.try_emplace(extent.constant(), 0);
      // Half of the extents stay, so that more of those that depend on an attribute fit.
      if (added) at->second = random() % 2 == 0 ? extent.constant() : DrawExtent(at->first, random);
      extent = at->second;
    }
    operand.type = operand.type.With(std::move(shape));
  }
  return c;
}

bool IsSmall(const ir::Types& types) {
  for (const ir::Type& t : types)
    if (t.is_tensor() && t.elements().max() > kMostElementsOfCase) return false;
  return true;
}

}  // namespace

std::vector<ir::ConcreteCase> RandomCases(const ir::OpDef& def, int count, uint64_t seed) {
  auto cases = ir::ConcreteCases(def);
  FORGE_CHECK(cases.ok());
  std::erase_if(*cases, [](const ir::ConcreteCase& c) { return c.bench || !c.refuse.empty(); });
  std::vector<ir::ConcreteCase> out;
  std::mt19937_64 random(seed);
  for (int i = 0; i < count * kAttempts && !cases->empty(); ++i) {
    if (out.size() == static_cast<size_t>(count)) break;
    ir::ConcreteCase c = Varied((*cases)[random() % cases->size()], random);
    const auto types = c.op.Infer(c.types());
    if (types.ok() && IsSmall(c.types()) && IsSmall(*types)) out.push_back(std::move(c));
  }
  return out;
}

int RandomCaseCount(int standard) { return CountFromEnvironment("FORGE_RANDOM_CASES", standard); }

}  // namespace forge
