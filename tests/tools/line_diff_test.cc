// SPDX-License-Identifier: Apache-2.0
#include "tools/page/line_diff.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace forge::tools {
namespace {

Lines Words(std::string_view text) {
  Lines out;
  for (char c : text) out.push_back(std::string(1, c));
  return out;
}

// Applies a diff to `a`, checking everything that it says of `a`.
Lines Patch(const Lines& a, const std::string& diff) {
  Lines out;
  size_t at = 0, expected_b = 0;
  for (const std::string& line : SplitLines(diff)) {
    if (line.starts_with("@@")) {
      size_t begin = 0, count = 1;
      std::sscanf(line.c_str(), "@@ -%zu,%zu", &begin, &count);
      const size_t to = count == 0 ? begin : begin - 1;
      while (at < to) out.push_back(a[at++]);
      expected_b = out.size();
      size_t begin_b = 0, count_b = 1;
      std::sscanf(line.c_str() + line.find('+'), "+%zu,%zu", &begin_b, &count_b);
      EXPECT_EQ(count_b == 0 ? begin_b : begin_b - 1, expected_b) << diff;
      continue;
    }
    if (line[0] != '-') out.push_back(line.substr(1));
    if (line[0] == '+') continue;
    EXPECT_EQ(line.substr(1), a[at++]) << diff;
  }
  while (at < a.size()) out.push_back(a[at++]);
  return out;
}

TEST(LineDiffTest, SaysNothingOfEqualTexts) {
  EXPECT_EQ(UnifiedDiff({}, {}), "");
  EXPECT_EQ(UnifiedDiff(Words("abc"), Words("abc")), "");
}

TEST(LineDiffTest, WritesWhatDiffWrites) {
  EXPECT_EQ(UnifiedDiff(Words("abcdefghij"), Words("abcdXfghij")),
            "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+X\n f\n g\n h\n");
  EXPECT_EQ(UnifiedDiff({}, Words("ab")), "@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(UnifiedDiff(Words("a"), {}), "@@ -1 +0,0 @@\n-a\n");
}

TEST(LineDiffTest, JoinsHunksThatTouch) {
  EXPECT_EQ(SplitLines(UnifiedDiff(Words("a123456b"), Words("A123456B"))).size(), 11u);
  const std::string two = UnifiedDiff(Words("a1234567b"), Words("A1234567B"));
  EXPECT_NE(two.find("@@ -6,4 +6,4 @@"), std::string::npos) << two;
}

TEST(LineDiffTest, PatchesGiveTheNewText) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Lines a, b;
    const size_t letters = 1 + random() % 30;
    for (size_t i = random() % 60; i > 0; --i) a.push_back(std::to_string(random() % letters));
    for (const std::string& l : a) {
      if (random() % 5 == 0) continue;
      b.push_back(l);
      if (random() % 6 == 0) b.push_back(std::to_string(random() % letters));
    }
    EXPECT_EQ(Patch(a, UnifiedDiff(a, b)), b);
  }
}

TEST(LineDiffTest, TakesALongTextInGoodTime) {
  Lines a, b;
  for (int i = 0; i < 20000; ++i) {
    a.push_back(std::to_string(i % 7 ? i : 0));
    b.push_back(std::to_string(i % 11 ? i : 1));
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Patch(a, UnifiedDiff(a, b)), b);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace forge::tools
