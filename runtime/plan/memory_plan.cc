// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "runtime/device/device.h"

namespace forge {
namespace {

struct Placed {
  uint64_t begin, end;
  Lifetime life;
};

bool Meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// The lowest offset in a chunk at which `bytes` are free during `life`; `chunk` is sorted by
// offset.
uint64_t LowestFree(const std::vector<Placed>& chunk, const Lifetime& life, uint64_t bytes) {
  uint64_t at = 0;
  for (const Placed& p : chunk) {
    if (!Meet(p.life, life)) continue;
    if (at + bytes <= p.begin) return at;
    at = std::max(at, p.end);
  }
  return at;
}

uint64_t LargestLiveSet(const std::vector<Lifetime>& values) {
  int steps = 0;
  for (const Lifetime& v : values) steps = std::max(steps, v.last + 1);
  std::vector<int64_t> change(steps + 1, 0);
  for (const Lifetime& v : values) {
    change[v.first] += static_cast<int64_t>(AlignUp(v.bytes, kAlignment));
    change[v.last + 1] -= static_cast<int64_t>(AlignUp(v.bytes, kAlignment));
  }
  int64_t live = 0, most = 0;
  for (int64_t c : change) most = std::max(most, live += c);
  return static_cast<uint64_t>(most);
}

}  // namespace

absl::StatusOr<uint64_t> BytesOf(const ir::Type& t) {
  FORGE_ASSIGN_OR_RETURN(const ir::Dim bytes, t.bytes());
  if (bytes.max() == INT64_MAX) return ResourceExhausted("{} has no largest size", t.ToText());
  return static_cast<uint64_t>(bytes.max());
}

uint64_t ArenaPlan::total_bytes() const {
  return std::accumulate(chunk_bytes.begin(), chunk_bytes.end(), uint64_t{0});
}

ArenaPlan PlanArena(const std::vector<Lifetime>& values, uint64_t largest_chunk) {
  ArenaPlan plan;
  plan.places.resize(values.size());
  plan.largest_live_set = LargestLiveSet(values);
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a].bytes > values[b].bytes; });
  std::vector<std::vector<Placed>> chunks;
  for (size_t i : order) {
    const uint64_t bytes = AlignUp(values[i].bytes, kAlignment);
    const bool oversize = bytes > largest_chunk;
    size_t c = 0;
    uint64_t at = 0;
    for (; c < chunks.size(); ++c) {
      at = LowestFree(chunks[c], values[i], bytes);
      if (oversize ? at == 0 : plan.chunk_bytes[c] <= largest_chunk && at + bytes <= largest_chunk)
        break;
    }
    if (c == chunks.size()) {
      chunks.emplace_back();
      plan.chunk_bytes.push_back(0);
      at = 0;
    }
    const Placed placed{at, at + bytes, values[i]};
    auto where =
        std::upper_bound(chunks[c].begin(), chunks[c].end(), placed,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    chunks[c].insert(where, placed);
    plan.chunk_bytes[c] = std::max(plan.chunk_bytes[c], at + bytes);
    plan.places[i] = {static_cast<int>(c), at};
  }
  return plan;
}

ArenaPlan OneChunkEach(const std::vector<Lifetime>& values) {
  ArenaPlan plan;
  for (const Lifetime& v : values) {
    plan.places.push_back({static_cast<int>(plan.places.size()), 0});
    plan.chunk_bytes.push_back(AlignUp(v.bytes, kAlignment));
  }
  plan.largest_live_set = LargestLiveSet(values);
  return plan;
}

}  // namespace forge
