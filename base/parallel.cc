// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace forge {

void ParallelFor(size_t n, int threads, absl::FunctionRef<void(size_t)> body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) body(i);
  };
  const size_t helpers = std::min(n, static_cast<size_t>(std::max(threads, 1)));
  std::vector<std::thread> pool;
  try {
    for (size_t i = 1; i < helpers; ++i) pool.emplace_back(work);
  } catch (const std::system_error&) {
    // The system starts no more threads: those that there are do the work.
  }
  work();
  for (std::thread& t : pool) t.join();
}

}  // namespace forge
