// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/program_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "ir/ops/elementwise/elementwise.h"
#include "runtime/backends.h"
#include "tests/support/hooked_device.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using testing::HookedDevice;

class ProgramCacheTest : public ::testing::Test {
 protected:
  ProgramCacheTest() {
    ir::Function& f = function_;
    f.Return("y", f(ir::Relu{}, {f.Argument("x", F32({1}))}));
  }
  // Programs for a vector of this many elements.
  absl::StatusOr<std::vector<ProgramRef>> Get(int64_t elements,
                                              const ProgramCache::Options& options = {}) {
    const ProgramCache::Request request{
        &function_.nodes()[0], {F32({elements})}, {F32({elements})}, "relu"};
    return cache_.Get({&request, 1}, counts_, options);
  }

  const std::shared_ptr<HookedDevice> device_ =
      std::make_shared<HookedDevice>(*OpenDevice("reference", {}));
  ir::Function function_{"main"};
  ProgramCache cache_{device_};
  ProgramCache::Counts counts_;
};

TEST_F(ProgramCacheTest, ForgetsTheOldestThatNobodyHolds) {
  FORGE_ASSERT_OK_AND_ASSIGN(const auto held, Get(1));
  constexpr auto kMost = static_cast<int64_t>(ProgramCache::kMostIdle);
  for (int64_t n = 2; n < 3 * kMost; ++n) ASSERT_THAT(Get(n), Succeeds());
  EXPECT_LE(cache_.size(), ProgramCache::kMostIdle + 2);  // what is held, and the newest
  const int made = counts_.made;
  ASSERT_THAT(Get(3 * kMost - 1), Succeeds());
  FORGE_ASSERT_OK_AND_ASSIGN(const auto again, Get(1));
  EXPECT_EQ(again, held);
  EXPECT_EQ(counts_.made, made);
  ASSERT_THAT(Get(2), Succeeds());
  EXPECT_EQ(counts_.made, made + 1);
}

// Each compilation waits until the other has begun.
TEST_F(ProgramCacheTest, CompilesDifferentProgramsAtOnce) {
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0;
  std::atomic<bool> met = true;
  device_->on_compile = [&](std::span<const CompileRequest>) {
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    if (!changed.wait_for(lock, std::chrono::seconds(20), [&] { return begun == 2; })) met = false;
  };
  ProgramCache::Counts others;
  std::thread other([&] {
    const ProgramCache::Request request{&function_.nodes()[0], {F32({2})}, {F32({2})}, "relu"};
    EXPECT_THAT(cache_.Get({&request, 1}, others, {}), Succeeds());
  });
  EXPECT_THAT(Get(1), Succeeds());
  other.join();
  EXPECT_TRUE(met);
}

TEST_F(ProgramCacheTest, CompilesTheSameProgramOnce) {
  std::atomic<int> compiled = 0;
  device_->on_compile = [&](std::span<const CompileRequest> requests) {
    compiled += static_cast<int>(requests.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  std::vector<std::thread> threads;
  std::array<ProgramRef, 4> programs;
  for (ProgramRef& mine : programs)
    threads.emplace_back([&] {
      ProgramCache::Counts counts;
      const ProgramCache::Request request{&function_.nodes()[0], {F32({2})}, {F32({2})}, "relu"};
      const auto got = cache_.Get({&request, 1}, counts, {});
      ASSERT_THAT(got, Succeeds());
      mine = (*got)[0];
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(compiled, 1);
  for (const ProgramRef& p : programs) EXPECT_EQ(p, programs[0]);
}

TEST_F(ProgramCacheTest, ACancelledCallLeavesNothingBehind) {
  std::atomic<bool> cancel = false;
  device_->on_compile = [&](std::span<const CompileRequest>) { cancel = true; };
  EXPECT_THAT(Get(1, {.cancel = &cancel}), Fails(absl::StatusCode::kAborted, "cancelled"));
  EXPECT_EQ(cache_.size(), 0u);
  device_->on_compile = nullptr;
  EXPECT_THAT(Get(1), Succeeds());
}

}  // namespace
}  // namespace forge
