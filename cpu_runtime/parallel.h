// SPDX-License-Identifier: Apache-2.0
// Work divided among OpenMP's threads, the same way at every run.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace forge::cpu {

// Element operations that outweigh waking the other threads, which takes about 2 microseconds: a
// core does 20 or more in a nanosecond.
inline constexpr double kWorthThreads = 96 * 1024;
inline bool WorthThreads(double element_operations) { return element_operations >= kWorthThreads; }

// For how many threads libraries divide their work in the calling thread, which may be a caller's:
// it gets its own number back.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadScope() { omp_set_num_threads(before_); }
  ThreadScope(const ThreadScope&) = delete;

 private:
  int before_;
};

struct Parts {
  int64_t n;      // pieces of work
  int64_t grain;  // parts begin at multiples of it
  int threads;    // 1, or all that the device has: libgomp ends threads when a team shrinks
};

// Calls f(thread, begin, end) for parts that cover 0 .. n, one for each thread that has any.
template <class F>
void ParallelParts(const Parts& parts, F f) {
  const int64_t grains = (parts.n + parts.grain - 1) / parts.grain;
  if (grains == 0) return;
  if (parts.threads <= 1 || grains == 1) return f(0, int64_t{0}, parts.n);
#pragma omp parallel num_threads(parts.threads)
  {
    // A team may be smaller than asked for.
    const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t begin = grains * me / team * parts.grain;
    const int64_t end = std::min(grains * (me + 1) / team * parts.grain, parts.n);
    if (begin < end) f(static_cast<int>(me), begin, end);
  }
}

}  // namespace forge::cpu
