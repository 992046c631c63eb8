// SPDX-License-Identifier: Apache-2.0
// The entry points that libFuzzer calls, and the one it offers. source: llvm.org/docs/LibFuzzer
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

extern "C" {

// Reads `data` as a file; must always return.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Changes `size` bytes in place, in a buffer of `max_size`; returns the new size. Optional.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
// libFuzzer's own, which knows its dictionary.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

}  // extern "C"

namespace forge::fuzz {

// Aborts at its end where more processor time has passed than any small file may take. libFuzzer's
// own limit counts what other programs take, too.
class TimeLimit {
 public:
  TimeLimit() = default;
  TimeLimit(const TimeLimit&) = delete;
  ~TimeLimit() {
    const double seconds = static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC;
    if (seconds <= kMaxSeconds) return;
    std::fprintf(stderr, "slow: %.1f s of processor time\n", seconds);
    std::abort();
  }

 private:
  static constexpr double kMaxSeconds = 2;  // with sanitizers: a quarter of that without
  const std::clock_t begin_ = std::clock();
};

}  // namespace forge::fuzz
