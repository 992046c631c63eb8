// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include "base/platform.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

constexpr int64_t kSecond = 1'000'000'000;  // nanoseconds

absl::StatusOr<Ended> RunShell(const std::string& script, int64_t nanoseconds = 60 * kSecond) {
  const std::string words[] = {"-c", script};
  return RunToEnd("/bin/sh", words, nanoseconds);
}

TEST(ProcessTest, GivesOutputAndNoFault) {
  FORGE_ASSERT_OK_AND_ASSIGN(const Ended ended, RunShell("echo one; cat; echo two"));
  EXPECT_EQ(ended.output, "one\ntwo\n");
  EXPECT_EQ(ended.fault, "");
}

TEST(ProcessTest, TellsHowItEnded) {
  FORGE_ASSERT_OK_AND_ASSIGN(const Ended status, RunShell("echo begun; exit 3"));
  EXPECT_EQ(status.output, "begun\n");
  EXPECT_EQ(status.fault, "exit status 3");
  FORGE_ASSERT_OK_AND_ASSIGN(const Ended signal, RunShell("kill -SEGV $$"));
  EXPECT_EQ(signal.fault, "signal 11 (Segmentation fault)");
}

TEST(ProcessTest, EndsWhatIsSilentForTooLong) {
  const int64_t began = NowNanoseconds();
  FORGE_ASSERT_OK_AND_ASSIGN(const Ended silent, RunShell("exec sleep 600", kSecond));
  EXPECT_EQ(silent.fault, "silent for 1 s");
  EXPECT_TRUE(silent.silent);
  FORGE_ASSERT_OK_AND_ASSIGN(const Ended closed, RunShell("exec sleep 600 >&-", kSecond));
  EXPECT_EQ(closed.fault, "silent for 1 s");
  EXPECT_LT(NowNanoseconds() - began, 60 * kSecond);
}

TEST(ProcessTest, WaitsAsLongAsSomethingIsWritten) {
  const int64_t began = NowNanoseconds();
  FORGE_ASSERT_OK_AND_ASSIGN(
      const Ended ended,
      RunShell("for i in 1 2 3 4 5 6; do sleep 0.5; echo $i; done", 2 * kSecond));
  EXPECT_EQ(ended.fault, "");
  EXPECT_FALSE(ended.silent);
  EXPECT_GT(NowNanoseconds() - began, 2 * kSecond);
}

TEST(ProcessTest, KeepsSoMuchOutput) {
  FORGE_ASSERT_OK_AND_ASSIGN(const Ended ended, RunShell("head -c 3000000 /dev/zero"));
  EXPECT_EQ(ended.output.size(), size_t{1} << 20);
  EXPECT_EQ(ended.fault, "");
}

TEST(ProcessTest, SaysWhatCannotBeStarted) {
  const auto ended = RunToEnd("/nonexistent/program", {}, kSecond);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(Message(ended.status()),
            "/nonexistent/program cannot be started: No such file or directory");
}

}  // namespace
}  // namespace forge
