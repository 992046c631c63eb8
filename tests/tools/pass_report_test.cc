// SPDX-License-Identifier: Apache-2.0
#include "tools/page/pass_report.h"

#include <nlohmann/json.hpp>

#include "ir/ops/elementwise/elementwise.h"
#include "tests/tools/shell.h"

namespace forge::tools {
namespace {

using namespace testing;  // NOLINT: how programs are run

ir::Type Floats() { return ir::Type::Tensor(DType::kF32, {4}); }

TEST(PassReportTest, CarriesNumbersOverWhereNodesCorrespond) {
  ir::Function before("main"), after("main");
  {
    const ir::Value x = before.Argument("x", Floats());
    const ir::Value dead = before(ir::Neg{}, {x});
    (void)dead;
    const ir::Value e = before(ir::Exp{}, {x});
    before.Return("y", before(ir::Add{}, {e, x}));
  }
  {
    const ir::Value x = after.Argument("x", Floats());
    const ir::Value e = after(ir::Exp{}, {x});
    after.Return("y", after(ir::Add{}, {e, x}));
  }
  PassReport report;
  report.Begin(before);
  const PassReport::Change c = report.After(after);
  const Lines lines = SplitLines(c.diff);
  ASSERT_EQ(std::count_if(lines.begin(), lines.end(), [](auto& l) { return l[0] == '-'; }), 1)
      << c.diff;
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](auto& l) { return l[0] == '+'; }), 0)
      << c.diff;
  EXPECT_NE(c.diff.find("-  %0 = neg(%x)"), std::string::npos) << c.diff;
  EXPECT_EQ(SummaryOf("tidy", "main", c), "tidy (main): 3 -> 2 nodes; neg 1 -> 0");
  EXPECT_EQ(report.After(after).diff, "");
}

TEST(PassReportTest, FollowsFunctionsByTheirNames) {
  ir::Function load("load");
  load.Return("y", load(ir::Neg{}, {load.Argument("x", Floats())}));
  PassReport report;
  const PassReport::Change c = report.After(load);
  EXPECT_EQ(c.nodes_before, 0u);
  EXPECT_EQ(c.nodes_after, 1u);
  EXPECT_NE(c.diff.find("@@ -0,0 +1,4 @@"), std::string::npos) << c.diff;
}

TEST(ForgeInspectTest, ShowsWhatEachPassDid) {
  const std::string inspect = "forge-inspect " + kModel + " --device reference ";
  const Outcome all = Shell(inspect + "--pass all --dim N=1");
  EXPECT_EQ(all.status, 0) << all.err;
  for (const char* pass :
       {"import (main): ", "fold (main): ", "recognise (main): ", "legalise (main): ",
        "hoist (main): ", "fuse (main): ", "fuse load (load): ", "bind (main): ", "encode (main): ",
        "pack (main): "})
    EXPECT_NE(all.out.find(pass), std::string::npos) << pass;
  EXPECT_NE(all.out.find("batch_norm 3 -> 0"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("\n-  "), std::string::npos);
  EXPECT_NE(all.out.find("\n+  "), std::string::npos);
  EXPECT_NE(all.out.find("(nothing changed)"), std::string::npos);

  const Outcome one = Shell(inspect + "--pass fold --json");
  const auto json = nlohmann::json::parse(one.out, nullptr, false);
  ASSERT_EQ(json.size(), 1u) << one.out << one.err;
  EXPECT_EQ(json[0]["pass"], "fold");
  EXPECT_EQ(json[0]["ops"]["batch_norm"], nlohmann::json({3, 0}));
  EXPECT_NE(json[0]["diff"].get<std::string>().find("@@ "), std::string::npos);

  const Outcome text = Shell(inspect + "--pass fold --text");
  EXPECT_NE(text.out.find("function main("), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("@@ -"), std::string::npos);
  ExpectError(inspect + "--pass folding", 2, "the passes are import, fold");
}

}  // namespace
}  // namespace forge::tools
