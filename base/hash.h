// SPDX-License-Identifier: Apache-2.0
// Hashes that are equal in every process, for the names of cache entries on disk.
#pragma once
#include <cstdint>
#include <string_view>

namespace forge {

// Mixes `value` into `seed`; order matters.
constexpr uint64_t HashMix(uint64_t seed, uint64_t value) {
  uint64_t h = (seed ^ (value + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
  h ^= h >> 29;
  h *= 0x94d049bb133111ebu;
  return h ^ (h >> 32);
}

// For short strings such as names; use xxHash for long data.
constexpr uint64_t HashText(std::string_view text, uint64_t seed = 0) {
  uint64_t h = HashMix(seed, text.size());
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return HashMix(h, 0);
}

}  // namespace forge
