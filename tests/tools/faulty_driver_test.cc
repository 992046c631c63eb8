// SPDX-License-Identifier: Apache-2.0
// A driver that is wrong about one feature at a time: Forge notices and gives the right answers.
#include <map>
#include <set>

#include "tests/support/fault_injection.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

std::string Faulty(const std::string& lie) {
  std::string text;
  for (const auto& [name, value] : FaultInjection(FORGE_BINARY_DIR, lie))
    text += name + "='" + value + "' ";
  return text;
}

// The features of which a line of a self-test says `word`.
std::set<std::string> Told(const std::string& lines, const std::string& word) {
  std::set<std::string> features;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(word + " ")) {
      const std::string rest = line.substr(word.size() + 1);
      features.insert(rest.substr(0, rest.find(':')));
    }
  return features;
}

std::string Parity() {
  return "forge-parity " + kModel + " --devices reference,vulkan --inputs image=" + kPicture;
}

class FaultyDriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!IsHere("vulkan")) GTEST_SKIP() << "there is no Vulkan device";
    const Outcome honest = Shell("../lib/forge-self-test vulkan 0");
    ASSERT_EQ(honest.status, 0) << honest.err;
    features_ = Told(honest.out, "passed");
    if (features_.empty()) GTEST_SKIP() << "the device has nothing to lie about";
  }
  // What there is to lie about, and the feature that it concerns.
  std::map<std::string, std::string> Lies() const {
    std::map<std::string, std::string> lies;
    for (const std::string& feature : features_) {
      lies[feature] = feature;
      for (const std::string part : kLiesAboutParts)
        if (part.starts_with(feature + "_")) lies[part] = feature;
    }
    return lies;
  }
  std::string Cache() const { return CacheIn(cache_); }
  // The driver's own cache is one for all lies: it keeps what shaders compile to.
  std::string CacheIn(const TempFolder& folder) const {
    return fmt::format("XDG_CACHE_HOME='{}' MESA_SHADER_CACHE_DIR='{}' GALLIVM_PERF=nopt ",
                       folder.path().string(), shaders_.path().string());
  }

  std::set<std::string> features_;
  TempFolder cache_, shaders_;
};
using SlowFaultyDriverTest = FaultyDriverTest;

TEST_F(FaultyDriverTest, EveryLieIsNoticedAndNothingElseSuspected) {
  for (const auto& [lie, feature] : Lies()) {
    const Outcome o = Shell("../lib/forge-self-test vulkan 0", Cache() + Faulty(lie));
    EXPECT_EQ(Told(o.out, "failed"), std::set{feature}) << lie << "\n" << o.out << o.err;
    EXPECT_EQ(Told(o.out, "passed").size(), features_.size() - 1) << lie;
  }
}

TEST_F(FaultyDriverTest, ACrashMarksTheFeatureAlone) {
  const std::string feature = *features_.begin();
  const std::string faults = Cache() + Faulty(feature + ":crash");
  const Outcome run = Shell(Parity(), faults);
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  const Outcome listed = Shell("forge-devices -v", Cache());
  EXPECT_NE(listed.out.find(feature + ": self-test failed: the driver ended its process: signal 6"),
            std::string::npos)
      << listed.out;
  for (const std::string& other : features_)
    EXPECT_NE(listed.out.find(other + ": self-test " + (other == feature ? "failed" : "passed")),
              std::string::npos)
        << other;
}

TEST_F(SlowFaultyDriverTest, AnswersAreRightWhateverIsWrong) {
  for (const auto& [lie, feature] : Lies()) {
    const TempFolder cache;
    const Outcome o = Shell(Parity(), CacheIn(cache) + Faulty(lie));
    EXPECT_EQ(o.status, 0) << lie << "\n" << o.out << o.err;
  }
}

// What the verdicts are for: one of an honest driver lets the lie through.
TEST_F(SlowFaultyDriverTest, ALieBelievedGivesWrongAnswers) {
  ASSERT_EQ(Shell(Parity(), Cache()).status, 0);
  int wrong = 0;
  for (const std::string& feature : features_)
    wrong += Shell(Parity(), Cache() + Faulty(feature)).status != 0 ? 1 : 0;
  EXPECT_GT(wrong, 0);
}

}  // namespace
}  // namespace forge
