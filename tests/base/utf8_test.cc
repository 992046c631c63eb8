// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

TEST(WellFormedUtf8Test, KeepsWhatIsWellFormed) {
  for (const char* text : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xef\xbf\xbd",
                           "\xf0\x9f\x8e\x89", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "\xc2\x80"})
    EXPECT_EQ(WellFormedUtf8(text), text);
}

TEST(WellFormedUtf8Test, ReplacesEachByteThatIsNot) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(WellFormedUtf8("a\xff z"), "a" + bad + " z");
  EXPECT_EQ(WellFormedUtf8("\x80"), bad);
  EXPECT_EQ(WellFormedUtf8("\xc3"), bad);  // cut off
  EXPECT_EQ(WellFormedUtf8("\xe2\x82 "), bad + bad + " ");
  EXPECT_EQ(WellFormedUtf8("\xc0\xaf"), bad + bad);  // longer than needed
  EXPECT_EQ(WellFormedUtf8("\xe0\x9f\xbf"), bad + bad + bad);
  EXPECT_EQ(WellFormedUtf8("\xf0\x8f\xbf\xbf"), bad + bad + bad + bad);
  EXPECT_EQ(WellFormedUtf8("\xed\xa0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(WellFormedUtf8("\xf4\x90\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(WellFormedUtf8("\xc3\xc3\xa9"), bad + "\xc3\xa9");
}

}  // namespace
}  // namespace forge
