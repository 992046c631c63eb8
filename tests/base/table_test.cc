// SPDX-License-Identifier: Apache-2.0
#include "base/table.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

TEST(TableTest, PutsNumbersToTheRight) {
  Table table({"op", "ms", "note"});
  table.Add({"add", "1.5", "-"});
  table.Add({"µ-kernel", "12.25", "[2]"});
  EXPECT_EQ(table.Text(),
            "op           ms  note\n"
            "add         1.5  -\n"
            "µ-kernel  12.25  [2]\n");
  const auto loud = [](std::string_view s) { return "<" + std::string(s) + ">"; };
  EXPECT_TRUE(table.Text("  ", loud).starts_with("<  op           ms  note>\n  add "));
}

TEST(TableTest, MayHaveNoHeader) {
  Table table({});
  table.Add({"a", "b"});
  EXPECT_EQ(table.Text(), "a  b\n");
}

}  // namespace
}  // namespace forge
