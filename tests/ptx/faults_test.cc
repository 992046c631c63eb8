// SPDX-License-Identifier: Apache-2.0
// Each planted fault of kernels/faults.cu is found: by the machine, or by the result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/ptx/runner.h"

namespace forge::ptx {
namespace {

struct Fault {
  const char* kernel;
  const char* right;  // the kernel without the fault
  const char*
      finding;  // parts of what the machine may say, divided by '|'; empty: the result differs
};
constexpr Fault kFaults[] = {
    {"neighbour_no_barrier", "neighbour_ok", "no barrier between|nobody wrote"},
    {"neighbour_barrier_of_half_a_warp", "neighbour_ok",
     "lanes of the warp wait for each other for ever|nobody wrote"},
    {"neighbour_barrier_of_one_warp", "neighbour_ok",
     "not all threads of the block reach|no barrier between|nobody wrote"},
    {"neighbour_barrier_after_exit", "neighbour_ok", "never reach: they have ended"},
    {"neighbour_warp_barrier_only", "neighbour_ok", "no barrier between|nobody wrote"},
    {"rounds_no_barrier_before_reuse", "rounds_ok", "race: "},
    {"reduce_dropped_syncwarp", "reduce_ok", "of the same warp"},
    // The order decides which lane is first: one that reads what nobody wrote, or one that reads
    // between the array and dynamic shared memory.
    {"reduce_reads_out_of_shared", "reduce_ok", "which no variable holds|nobody wrote"},
    {"bounds_read_past_the_end", "bounds_ok", "0 bytes behind the allocation of 512 bytes"},
    {"bounds_write_past_the_end", "bounds_ok", "writes 4 bytes"},
    {"bounds_read_before_the_start", "bounds_ok", "4 bytes before the allocation"},
    {"bounds_null", "bounds_ok", "out of bounds"},
    {"bounds_misaligned_vector", "bounds_ok", "is no multiple of 16"},
    {"shared_into_the_next_array", "shared_ok", "which no variable holds"},
    {"shared_dynamic_past_the_end", "shared_ok", "out of bounds"},
    {"shared_misaligned", "shared_ok", "is no multiple of 8"},
    {"shared_uninitialised", "shared_ok", "nobody wrote"},
    {"shuffle_mask_without_itself", "shuffle_ok", "lacks lane 16 itself"},
    {"shuffle_half_arrives", "shuffle_ok", "end without it, which the mask names"},
    {"shuffle_from_absent_lane", "shuffle_ok", "which does not take part"},
    {"shuffle_wrong_distance", "shuffle_ok", ""},
    {"async_no_wait", "async_ok", "before the cp.async to it was waited for"},
    {"async_wait_for_older_group", "async_ok", "before the cp.async to it was waited for"},
    {"async_no_barrier_after_wait", "async_ok", "no barrier between|nobody wrote"},
    {"async_overwritten_in_flight", "async_ok", "before the cp.async to it was waited for"},
    {"histogram_non_atomic", "histogram_ok", "race: "},
    {"histogram_not_cleared", "histogram_ok", "nobody wrote"},
    {"histogram_read_too_early", "histogram_ok", "no barrier between|nobody wrote"},
    {"global_sum_non_atomic", "global_sum_ok", ""},
    {"across_blocks_no_launch_between", "across_blocks_ok", ""},
    {"product_wrong_swizzle", "product_ok", ""},
    {"product_transposed", "product_ok", ""},
    {"product_misaligned_rows", "product_ok", "is no multiple of 16"},
    {"product_swapped_sums", "product_ok", ""},
    {"local_out_of_bounds", "local_ok", "of local memory, out of bounds"},
    {"overwrite_before_others_read", "overwrite_ok", "race: "},
    {"flag_never_set", "flag_ok", "runs for more than"},
};

bool Says(const std::string& message, std::string_view findings) {
  for (size_t at = 0; at <= findings.size();) {
    const size_t end = std::min(findings.find('|', at), findings.size());
    if (message.find(findings.substr(at, end - at)) != std::string::npos) return true;
    at = end + 1;
  }
  return false;
}

struct Outcome {
  absl::Status status;
  std::vector<float> y;
};

Outcome RunFault(const std::string& text, const char* kernel, Order order, uint64_t seed) {
  const int n = 128;
  std::mt19937 random(7);
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(random() % 1000) / 250 - 2;
  Outcome outcome;
  outcome.y.assign(n, 0);
  outcome.status = RunPtx(text, kernel,
                          {.grid = {2},
                           .threads = {64},
                           .dynamic_shared = 256,
                           .order = order,
                           .seed = seed,
                           .host_threads = 1,
                           .most_steps = 2000000},
                          {Argument::Buffer(x), Argument::Buffer(outcome.y), Argument::Scalar(n)});
  return outcome;
}

constexpr Order kOrders[] = {Order::kForward, Order::kReversed, Order::kRandom};

class FaultsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FaultsTest, RightKernelsHaveNoFindingAndOneResultInAllOrders) {
  const std::string text = KernelText("faults", GetParam());
  for (const char* kernel :
       {"neighbour_ok", "rounds_ok", "rounds_two_buffers_ok", "reduce_ok", "bounds_ok", "shared_ok",
        "shuffle_ok", "async_ok", "histogram_ok", "global_sum_ok", "across_blocks_ok", "product_ok",
        "local_ok", "overwrite_ok", "flag_ok"}) {
    const Outcome first = RunFault(text, kernel, Order::kForward, 1);
    EXPECT_TRUE(first.status.ok()) << first.status.message();
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const Outcome other = RunFault(text, kernel, kOrders[seed % 3], seed);
      EXPECT_TRUE(other.status.ok()) << other.status.message();
      EXPECT_EQ(other.y, first.y) << kernel;
    }
  }
}

// In every order, not in some: what is found must not depend on luck.
TEST_P(FaultsTest, FindsEachPlantedFault) {
  const std::string text = KernelText("faults", GetParam());
  for (const Fault& fault : kFaults) {
    const Outcome right = RunFault(text, fault.right, Order::kForward, 1);
    bool differs = false;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const Outcome wrong = RunFault(text, fault.kernel, kOrders[seed], seed);
      const std::string message(Message(wrong.status));
      differs |= wrong.y != right.y;
      if (*fault.finding == '\0') {
        EXPECT_TRUE(wrong.status.ok()) << message;
        continue;
      }
      EXPECT_TRUE(Says(message, fault.finding)) << fault.kernel << ": " << message;
      EXPECT_NE(message.find(std::string("kernel ") + fault.kernel), std::string::npos) << message;
    }
    if (*fault.finding == '\0') {
      EXPECT_TRUE(differs) << fault.kernel;
    }
  }
}

// A device may place dynamic shared memory at any multiple of the alignment that is asked for.
TEST(DynamicSharedTest, IsAlignedAsDeclaredAndNoMore) {
  const auto store = [](int align) {
    std::vector<uint32_t> unused(1);
    return RunPtx(fmt::format(R"(.version 8.0
.target sm_80
.address_size 64
.extern .shared .align {} .b8 shared_memory[];
.visible .entry f(.param .u64 p) {{
  .reg .b32 %r<3>;
  mov.u32 %r1, shared_memory;
  mov.u32 %r2, 0;
  st.shared.v4.u32 [%r1+16], {{%r2, %r2, %r2, %r2}};
  ret;
}}
)",
                              align),
                  "f", {.grid = {1}, .threads = {1}, .dynamic_shared = 32},
                  {Argument::Buffer(unused)});
  };
  EXPECT_EQ(store(16), absl::OkStatus());
  EXPECT_EQ(store(1024), absl::OkStatus());
  EXPECT_NE(Message(store(8)).find("is no multiple of 16"), std::string_view::npos);
}

INSTANTIATE_TEST_SUITE_P(Both, FaultsTest, ::testing::Values("80", "100"));

}  // namespace
}  // namespace forge::ptx
