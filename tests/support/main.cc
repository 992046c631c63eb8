// SPDX-License-Identifier: Apache-2.0
// The main of every test program: Google Test's, which also tells how to repeat what fails.
#include <gtest/gtest.h>

#include <string>

#include "base/platform.h"
#include "base/status.h"

namespace forge {
namespace {

// Variables that decide what a test does.
constexpr const char* kVariables[] = {"FORGE_CASE_SEEDS", "FORGE_VK_DISABLE", "FORGE_VK_LIMITS",
                                      "FORGE_VK_VALIDATE", "VK_ICD_FILENAMES"};

class Repeats final : public testing::EmptyTestEventListener {
 public:
  explicit Repeats(std::string program) : program_(std::move(program)) {}

 private:
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    std::string command;
    for (const char* name : kVariables)
      if (const auto value = Environment(name)) command += fmt::format("{}='{}' ", name, *value);
    fmt::print("repeat with: {}{} --gtest_filter='{}.{}'\n", command, program_,
               test.test_suite_name(), test.name());
    fflush(stdout);
  }
  std::string program_;
};

}  // namespace
}  // namespace forge

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new forge::Repeats(argv[0]));
  return RUN_ALL_TESTS();
}
