// SPDX-License-Identifier: Apache-2.0
// Random numbers that are equal on every platform.
#pragma once
#include <cstdint>

namespace forge::tools {

// source: Steele et al., Fast Splittable Pseudorandom Number Generators (splitmix64)
class Generator {
 public:
  Generator(uint64_t seed, uint64_t stream) : state_(seed) { state_ = Next() + stream; }
  uint64_t Next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }
  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Below n, by the high half of a product (Lemire); the bias is below n / 2^64.
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace forge::tools
