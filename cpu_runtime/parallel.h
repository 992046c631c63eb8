// SPDX-License-Identifier: Apache-2.0
// Parallel loops on OpenMP threads. The division is the same in every run but for ParallelShares.
#pragma once
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

namespace forge::cpu {

// The number of element operations from which other threads pay: reaching them takes about 2
// microseconds while they spin, and a core computes 20 or more element operations per nanosecond.
inline constexpr double kWorthThreads = 96 * 1024;
inline bool WorthThreads(double element_operations) { return element_operations >= kWorthThreads; }

// Sets the number of threads that libraries use in the calling thread, and restores the previous
// number at the end of the scope, because the thread may belong to the user.
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

// The division of a loop.
struct Parts {
  int64_t n;      // iterations
  int64_t grain;  // each part begins at a multiple of it
  int threads;    // 1 or the number of the device: libgomp ends threads when a team shrinks
};

// Calls f(thread, begin, end) on parts that cover 0 .. n; each thread has at most one part.
template <class F>
void ParallelParts(const Parts& parts, F f) {
  const int64_t grains = (parts.n + parts.grain - 1) / parts.grain;
  if (grains == 0) return;
  if (parts.threads <= 1 || grains == 1) return f(0, int64_t{0}, parts.n);
#pragma omp parallel num_threads(parts.threads)
  {
    // The team may be smaller than requested.
    const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t begin = grains * me / team * parts.grain;
    const int64_t end = std::min(grains * (me + 1) / team * parts.grain, parts.n);
    if (begin < end) f(static_cast<int>(me), begin, end);
  }
}

// Calls f(thread, begin, end) on parts that cover 0 .. n, of which each thread takes another when
// it has done one: a thread that wakes late or is slow gets fewer.
template <class F>
void ParallelShares(const Parts& parts, F f) {
  constexpr int64_t kShares = 16;  // of a thread
  const int64_t grains = (parts.n + parts.grain - 1) / parts.grain;
  const int64_t share = std::max<int64_t>(grains / (kShares * parts.threads), 1) * parts.grain;
  if (parts.threads <= 1 || grains <= 1) return ParallelParts(parts, f);
  std::atomic<int64_t> next{0};
#pragma omp parallel num_threads(parts.threads)
  for (int64_t i = next.fetch_add(share, std::memory_order_relaxed); i < parts.n;
       i = next.fetch_add(share, std::memory_order_relaxed))
    f(static_cast<int>(omp_get_thread_num()), i, std::min(i + share, parts.n));
}

// A barrier of the threads of a team, for waits of microseconds. Spins briefly, then yields, so
// that a busy machine goes on.
class TeamBarrier {
 public:
  explicit TeamBarrier(int threads) : threads_(threads) {}
  int size() const { return threads_; }
  void Wait() {
    const uint32_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
      if (spins > kSpins) std::this_thread::yield();
  }

 private:
  static constexpr int kSpins = 1000;
  int threads_;
  std::atomic<int> arrived_{0};
  std::atomic<uint32_t> round_{0};
};

// Calls f(thread, team) in each thread of a team of at most `threads`.
template <class F>
void ParallelTeam(int threads, F f) {
  if (threads <= 1) {
    TeamBarrier alone(1);
    return f(0, alone);
  }
  std::optional<TeamBarrier> team;
#pragma omp parallel num_threads(threads)
  {
#pragma omp single
    team.emplace(omp_get_num_threads());  // may be fewer; the others wait here
    f(static_cast<int>(omp_get_thread_num()), *team);
  }
}

}  // namespace forge::cpu
