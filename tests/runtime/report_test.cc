// SPDX-License-Identifier: Apache-2.0
#include "runtime/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "runtime/backends.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice("reference", {}));
    FORGE_ASSERT_OK_AND_ASSIGN(
        session_, Session::Create(testing::AddingModel(), device,
                                  {.outputs = {"sum", "y"}, .debug = {.timestamps = true}}));
  }
  void Run() {
    const NamedTensor x{"x", Tensor({2, 3}, {})};
    begin_ = NowNanoseconds();
    ASSERT_THAT(session_->Run({&x, 1}), Succeeds());
    end_ = NowNanoseconds();
  }
  std::unique_ptr<Session> session_;
  int64_t begin_ = 0, end_ = 0;
};

TEST_F(ReportTest, ExplainsThePlan) {
  EXPECT_EQ(Explain(*session_), "nothing is bound yet\n");
  Run();
  const std::string text = Explain(*session_);
  for (const char* part :
       {"placement: every step on reference:0 (reference evaluators)", "evaluate",
        "(f32[2, 3], f32[3]) -> f32[2, 3]", "2 steps in 2 dispatches", "kernels: 2 made, 0 reused",
        "memory: arena ", "staging "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(ReportTest, ExplainsWhatIsNotFused) {
  Run();
  EXPECT_EQ(Explain(*session_).find("apart"), std::string::npos);
  const std::string text = Explain(*session_, true);
  EXPECT_NE(text.find("why steps are apart:\n   0 ->   1  "), std::string::npos) << text;
}

// Whether arguments are copied depends on the device; what a number means must not.
TEST(StepNumbersTest, LeaveCopiesOut) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice("reference", {}));
  FORGE_ASSERT_OK_AND_ASSIGN(
      auto session, Session::Create(testing::AddingModel(), device, {.outputs = {"x", "y"}}));
  ASSERT_THAT(session->Bind({{"n", 2}}), Succeeds());
  const Executable& e = *session->executable();
  size_t copies = 0, numbered = 0;
  for (const StepInfo& s : e.steps()) {
    copies += s.op == "copy";
    EXPECT_EQ(s.number, s.op == "copy" ? -1 : static_cast<int>(numbered++));
  }
  EXPECT_EQ(copies, 1u);
  EXPECT_EQ(numbered, e.programs().size());
  EXPECT_NE(Explain(*session).find("\n      copy"), std::string::npos) << Explain(*session);
}

TEST_F(ReportTest, TracesEveryStep) {
  EXPECT_THAT(TraceJson(*session_, {}),
              Fails(absl::StatusCode::kInvalidArgument, "nothing has run"));
  Run();
  const HostSpan host[] = {{"load", begin_ - 5000, begin_ - 2000}, {"run", begin_, end_}};
  FORGE_ASSERT_OK_AND_ASSIGN(std::string text, TraceJson(*session_, host));
  const auto trace = nlohmann::json::parse(text, nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  std::set<int> tracks;
  int slices = 0, with_kernel = 0;
  for (const auto& e : trace.at("traceEvents")) {
    if (e.at("ph") == "M") {
      if (e.at("name") == "thread_name") tracks.insert(e.at("tid").get<int>());
      continue;
    }
    ASSERT_EQ(e.at("ph"), "X");
    EXPECT_TRUE(e.at("name").is_string() && e.at("ts").is_number());
    EXPECT_GE(e.at("dur").get<double>(), 0);
    EXPECT_TRUE(tracks.contains(e.at("tid").get<int>()));
    ++slices;
    with_kernel += e.contains("args") && e.at("args").contains("kernel");
  }
  EXPECT_EQ(tracks.size(), 2u);
  EXPECT_EQ(with_kernel, static_cast<int>(session_->executable()->steps().size()));
  EXPECT_EQ(slices, with_kernel + 2);  // and the host's
}

TEST_F(ReportTest, DumpsNothingWhereThereIsNothing) {
  TempFolder folder;
  EXPECT_THAT(DumpArtifacts(*session_, folder.path()), Succeeds());
  Run();
  EXPECT_THAT(DumpArtifacts(*session_, folder.path()), Succeeds());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace forge
