// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace forge::vk {

void ParallelFor(size_t n, int threads, absl::FunctionRef<void(size_t)> body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) body(i);
  };
  const size_t helpers = std::min(n, static_cast<size_t>(std::max(threads, 1)));
  std::vector<std::thread> pool;
  for (size_t i = 1; i < helpers; ++i) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

}  // namespace forge::vk
