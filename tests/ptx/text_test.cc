// SPDX-License-Identifier: Apache-2.0
// PTX that is wrong: an error that names the line, never a crash.
#include <gtest/gtest.h>

#include "tests/ptx/machine/machine.h"
#include "tests/ptx/runner.h"

namespace forge::ptx {
namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

std::string ErrorOf(const std::string& text) {
  Memory memory;
  const auto loaded = LoadedModule::Load(text, memory);
  return loaded.ok() ? "" : std::string(Message(loaded.status()));
}

std::string ErrorOfBody(const std::string& body) {
  return ErrorOf(kHead + (".visible .entry f(.param .u64 p) {\n" + body + "\nret;\n}\n"));
}

TEST(TextTest, NamesTheLineOfAnUnknownOpcode) {
  EXPECT_EQ(ErrorOfBody(".reg .b32 %r<3>;\nfrobnicate.u32 %r1, %r2;"),
            "f, line 6: frobnicate.u32 %r1, %r2;: the opcode frobnicate is unknown");
}

TEST(TextTest, RefusesWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {".reg .b32 %r<3>;\nadd.frob.u32 %r1, %r2, %r2;", "the modifier .frob is not supported"},
      {".reg .b32 %r<3>;\nadd.u32 %r1, %r2;", "expected 3 operands"},
      {".reg .b32 %r<3>;\nadd.u32 %r1, %r2, %r9;", "%r9"},
      {".reg .b32 %r<3>;\n.reg .b64 %rd<3>;\nadd.u32 %r1, %r2, %rd1;", "has 8 bytes"},
      {"bra nowhere;", "there is no label nowhere"},
      {".reg .b32 %r<3>;\nmov.u32 %r1, %nothing;", "%nothing is not supported"},
      {".reg .b32 %r<3>;\nld.shared.u32 %r1, [unknown];", "there is no variable unknown"},
      {"call.uni frob, ();", "there is no function frob"},
      {".reg .b32 %r<99999999>;", "too many registers"},
      {".shared .b8 big[999999999999];", "larger than the limit"},
      {".shared .align 3 .b8 odd[4];", "alignment"},
      {".reg .b32 %r<3>;\n.shared .align 4 .b8 a[32768];\n.shared .align 4 .b8 b[16388];\n"
       "ld.shared.u32 %r1, [a];\nld.shared.u32 %r2, [b];",
       "49156 bytes of static shared memory"},
      {".reg .b32 %r<3>;\nmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, "
       "{%r1};",
       "registers"},
      {".reg .b32 %r<3>;\ncp.async.cg.shared.global [%r1], [%r1], 5;", "4, 8 or 16 bytes"},
      {"@%p1 ret;", "%p1 is no predicate"},
      {".reg .b32 %r<3>;\nadd.u32 %r1, %r2, {%r1, {%r1, {%r1, {%r1, {%r1}}}}};", "too deep"},
  };
  for (const auto& [body, part] : cases)
    EXPECT_NE(ErrorOfBody(body).find(part), std::string::npos) << body << "\n" << ErrorOfBody(body);
}

TEST(TextTest, RefusesTextThatIsNoPtx) {
  for (const char* text :
       {"", "hello", ".version 8.0", ".version 8.0\n.target sm_80\n.address_size 32\n",
        "\"never ends", "/* never ends", ".version 8.0\n.target sm_80\n.entry f() {"})
    EXPECT_NE(ErrorOf(text), "") << text;
}

TEST(TextTest, RefusesRecursion) {
  const std::string error =
      ErrorOf(std::string(kHead) +
              ".func g() {\ncall.uni g, ();\nret;\n}\n.entry f() {\ncall.uni g, ();\nret;\n}\n");
  EXPECT_NE(error.find("recursive"), std::string::npos) << error;
}

// Every prefix of a real module is an error or a module, and so is the module with any byte
// changed.
TEST(TextTest, SurvivesDamage) {
  const std::string text = KernelText("softmax", "80");
  ASSERT_FALSE(text.empty());
  int refused = 0;
  for (size_t i = 0; i < text.size(); i += 13) {
    refused += ErrorOf(text.substr(0, i)).empty() ? 0 : 1;
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 + i % 90));
    ErrorOf(damaged);
  }
  EXPECT_GT(refused, 100);
}

TEST(TextTest, InlinesFunctionsAndReadsTables) {
  const std::string text = std::string(kHead) + R"(
.global .align 4 .u32 table[4] = {10, 20, 30, 40};
.func (.param .b32 result) twice(.param .b32 value) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
}
.visible .entry f(.param .u64 out) {
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %tid.x;
  mov.u64 %rd1, table;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  {
    .param .b32 argument;
    .param .b32 answer;
    st.param.b32 [argument], %r2;
    call.uni (answer), twice, (argument);
    ld.param.b32 %r3, [answer];
  }
  ld.param.u64 %rd4, [out];
  add.u64 %rd5, %rd4, %rd2;
  st.global.u32 [%rd5], %r3;
  ret;
}
)";
  std::vector<uint32_t> out(4);
  const absl::Status status =
      RunPtx(text, "f", {.grid = {1}, .threads = {4}}, {Argument::Buffer(out)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(out, (std::vector<uint32_t>{20, 40, 60, 80}));
}

// Lane i loads word i * stride of global memory, or of shared memory.
Statistics StatisticsOf(bool shared, int stride) {
  const std::string text =
      std::string(kHead) +
      fmt::format(R"(
.visible .entry f(.param .u64 in) {{
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  .shared .align 4 .b8 words[8192];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, {0};
  ld.param.u64 %rd4, [in];
  add.u64 %rd5, %rd4, %rd2;
  mul.lo.u32 %r2, %r1, {0};
  mov.u32 %r3, words;
  add.u32 %r3, %r3, %r2;
  {1}
  ret;
}}
)",
                  4 * stride, shared ? "st.shared.u32 [%r3], %r1;" : "ld.global.u32 %r4, [%rd5];");
  std::vector<uint32_t> in(2048);
  Statistics statistics;
  const absl::Status status =
      RunPtx(text, "f", {.grid = {1}, .threads = {32}}, {Argument::Buffer(in)}, &statistics);
  EXPECT_TRUE(status.ok()) << status.message();
  return statistics;
}

TEST(TextTest, CountsSectorsAndBankConflicts) {
  EXPECT_EQ(StatisticsOf(false, 1).global_sectors, 4u);
  EXPECT_EQ(StatisticsOf(false, 2).global_sectors, 8u);
  EXPECT_EQ(StatisticsOf(false, 64).global_sectors, 32u);
  EXPECT_EQ(StatisticsOf(false, 0).global_sectors, 1u);
  EXPECT_EQ(StatisticsOf(true, 1).bank_conflicts, 0u);
  EXPECT_EQ(StatisticsOf(true, 2).bank_conflicts, 1u);
  EXPECT_EQ(StatisticsOf(true, 32).bank_conflicts, 31u);
  EXPECT_EQ(StatisticsOf(true, 33).bank_conflicts, 0u);
}

}  // namespace
}  // namespace forge::ptx
