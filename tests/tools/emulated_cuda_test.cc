// SPDX-License-Identifier: Apache-2.0
// forge-run on the emulated CUDA device.
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "tests/support/fetched_cuda.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

class SlowEmulatedCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto compiler = FetchedCuda();
    if (!compiler) GTEST_SKIP() << "there is no NVRTC: run tests/lab/fetch-cuda";
    const std::string driver = std::string(FORGE_BINARY_DIR) + "/emulated_cuda";
    environment_ = fmt::format("LD_LIBRARY_PATH='{}' FORGE_CUDA_PATH='{}' XDG_CACHE_HOME='{}' ",
                               driver, compiler->string(), cache_.path().string());
  }
  Outcome Run(const std::string& variables, const std::string& options = "") const {
    return Shell("forge-run --device cuda " + kSource +
                     "/tests/python/data/encoder.bin --input src=random --dim batch=2 "
                     "--dim sequence=5 --repeat 2 --print " +
                     options,
                 environment_ + variables + " ");
  }
  Outcome RunFailing(const std::string& calls) const {
    return Run("FORGE_EMULATED_CUDA_FAIL='" + calls + "'");
  }
  static std::string WithoutTimes(const std::string& out) {
    return out.substr(0, out.find("latency"));
  }

  std::string environment_;
  TempFolder cache_;
};

// The line by which the emulated driver tells that it did as it was asked; empty where no call had
// that number.
std::string TakeFailure(std::string& err) {
  const size_t at = err.find("emulated CUDA: ");
  if (at == std::string::npos) return "";
  const size_t end = err.find('\n', at) + 1;
  std::string line = err.substr(at, end - at);
  err.erase(at, end - at);
  return line;
}

// The answer is right, or the program ends with one sentence.
TEST_F(SlowEmulatedCudaTest, EachCallFails) {
  const Outcome right = Run("");
  ASSERT_EQ(right.status, 0) << right.err;
  int ended = 0, survived = 0;
  for (int call = 1; call < 2000; ++call) {
    Outcome o = RunFailing(fmt::format("*:{}", call));
    const std::string failure = TakeFailure(o.err);
    if (failure.empty()) break;
    SCOPED_TRACE(fmt::format("call {}: {}", call, failure));
    if (o.status == 0) {
      EXPECT_EQ(WithoutTimes(o.out), WithoutTimes(right.out));
      ++survived;
      continue;
    }
    EXPECT_TRUE(o.status == 4 || o.status == 5) << o.status;
    EXPECT_TRUE(o.err.starts_with("forge-run: error: ")) << o.err;
    EXPECT_EQ(std::ranges::count(o.err, '\n'), 1) << o.err;
    ++ended;
  }
  EXPECT_GT(ended, 50);
  EXPECT_GT(survived, 50);
  RecordProperty("ended", ended);
  RecordProperty("survived", survived);
}

TEST_F(SlowEmulatedCudaTest, EachAllocationFails) {
  for (const std::string function : {"cuMemAlloc_v2", "cuMemHostAlloc"}) {
    int ended = 0;
    for (int call = 1; call < 100; ++call) {
      Outcome o = RunFailing(fmt::format("{}:{}", function, call));
      if (TakeFailure(o.err).empty()) break;
      EXPECT_EQ(o.status, 5) << o.err;
      EXPECT_NE(o.err.find("memory for "), std::string::npos) << o.err;
      ++ended;
    }
    EXPECT_GT(ended, 1) << function;
  }
}

TEST_F(SlowEmulatedCudaTest, StepsAreRangesOfNvtx) {
  constexpr int kRuns = 3;  // the first one, and two that are timed
  const Outcome o = Run("FORGE_CUDA_NVTX=1", "--json --explain");
  ASSERT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  std::vector<std::string> ranges;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(o.err, '\n')))
    if (line.starts_with("emulated NVTX: ")) ranges.push_back(line.substr(15));
  std::map<std::string, int> steps;  // by label: parts of one op share it
  for (const auto& step : json["plan"]["steps"]) ++steps[step["label"]];
  EXPECT_GT(steps.size(), 3u);
  for (const auto& [label, count] : steps)
    EXPECT_EQ(std::ranges::count(ranges, label), kRuns * count) << label;
}

}  // namespace
}  // namespace forge
