// SPDX-License-Identifier: Apache-2.0
// wgmma on tiles in shared memory, by the layouts that the PTX ISA draws for swizzles of 128 bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/narrow_float.h"
#include "tests/ptx/runner.h"

namespace forge::ptx {
namespace {

using ::testing::HasSubstr;

constexpr int kM = 64, kN = 16, kK = 16, kLine = 64;  // halves in 128 bytes

struct GroupForm {
  DType type;
  bool a_along_m, b_along_n;  // what lines of shared memory run along, instead of k
};

// What the kernel does, where it does not do it right.
struct GroupSteps {
  std::string_view proxy_fence = "fence.proxy.async.shared::cta;";
  std::string_view fence = "wgmma.fence.sync.aligned;";
  std::string_view before_wait = "";
};

constexpr std::string_view kGroupKernel = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry product(.param .u64 in, .param .u64 out) {{
.shared .align 1024 .b8 tiles[16384];
.reg .f32 %d<8>;
.reg .u64 from, to, a, b, step;
.reg .u32 lane, at, n;
.reg .b32 %w<4>;
.reg .pred p, more;
mov.u32 lane, %tid.x;
ld.param.u64 from, [in];
ld.param.u64 to, [out];
mul.wide.u32 step, lane, 16;
add.u64 from, from, step;
mul.wide.u32 step, lane, 32;
add.u64 to, to, step;
mov.u32 at, tiles;
mad.lo.u32 at, lane, 16, at;
mov.u32 n, 0;
copy:
ld.global.v4.b32 {{%w0, %w1, %w2, %w3}}, [from];
st.shared.v4.b32 [at], {{%w0, %w1, %w2, %w3}};
add.u64 from, from, 2048;
add.u32 at, at, 2048;
add.u32 n, n, 1;
setp.lt.u32 more, n, 8;
@more bra copy;
{proxy}
bar.sync 0;
mov.u32 at, tiles;
cvt.u64.u32 a, at;
shr.u64 a, a, 4;
add.u64 b, a, {b_offset};
or.b64 a, a, {layout};
or.b64 b, b, {layout};
mov.f32 %d0, 0f3F800000;
mov.f32 %d1, 0f00000000;
mov.f32 %d2, 0f00000000;
mov.f32 %d3, 0f00000000;
mov.f32 %d4, 0f00000000;
mov.f32 %d5, 0f00000000;
mov.f32 %d6, 0f00000000;
mov.f32 %d7, 0f00000000;
setp.ne.b32 p, 1, 0;
{fence}
wgmma.mma_async.sync.aligned.m64n16k16.f32.{type}.{type} {{{regs}}}, a, b, p, 1, 1, {ta}, {tb};
wgmma.commit_group.sync.aligned;
{before_wait}
wgmma.wait_group.sync.aligned 0;
{stores}ret;
}}
)";

// 8192 bytes of A and 2048 or more of B are copied as they are, multiplied, and waited for.
std::string GroupText(const GroupForm& f, const GroupSteps& steps) {
  std::string regs, stores;
  for (int i = 0; i < kN / 2; ++i) {
    regs += fmt::format("{}%d{}", i == 0 ? "" : ", ", i);
    stores += fmt::format("st.global.f32 [to+{}], %d{};\n", 4 * i, i);
  }
  const std::string_view type = Name(f.type);
  // Lines of 128 bytes: 8 of them are 1024; the next 64 columns would be 2048 further.
  return fmt::format(fmt::runtime(kGroupKernel), fmt::arg("proxy", steps.proxy_fence),
                     fmt::arg("fence", steps.fence), fmt::arg("before_wait", steps.before_wait),
                     fmt::arg("regs", regs), fmt::arg("stores", stores), fmt::arg("type", type),
                     fmt::arg("ta", f.a_along_m ? 1 : 0), fmt::arg("tb", f.b_along_n ? 1 : 0),
                     fmt::arg("b_offset", 8192 >> 4),
                     fmt::arg("layout", uint64_t{1} << 62 | uint64_t{1024 >> 4} << 32 |
                                            uint64_t{2048 >> 4} << 16));
}

int NumberAt(int i, int k, int seed) { return (i * 7 + k * 5 + seed) % 9 - 4; }

class GroupMatrixOpsTest : public ::testing::TestWithParam<GroupForm> {
 protected:
  // Where element k of row or column `at` lies, in halves.
  static int Place(int at, int k, bool along) {
    const int line = along ? k : at, in_line = along ? at : k;
    return line * kLine + ((in_line / 8) ^ (line % 8)) * 8 + in_line % 8;
  }
  absl::Status Run(const GroupSteps& steps) {
    const GroupForm& f = GetParam();
    std::vector<uint16_t> in(8192);
    const auto put = [&](int first, int at, int k, bool along, int v) {
      in[static_cast<size_t>(first) + static_cast<size_t>(Place(at, k, along))] =
          static_cast<uint16_t>(EncodeNarrowFloat(f.type, v));
    };
    for (int k = 0; k < kK; ++k) {
      for (int m = 0; m < kM; ++m) put(0, m, k, f.a_along_m, NumberAt(m, k, 1));
      for (int n = 0; n < kN; ++n) put(4096, n, k, f.b_along_n, NumberAt(n, k, 2));
    }
    return RunPtx(GroupText(f, steps), "product", {.grid = {1}, .threads = {128}},
                  {Argument::Buffer(in), Argument::Buffer(out_)});
  }
  std::vector<float> out_ = std::vector<float>(128 * kN / 2);
};

TEST_P(GroupMatrixOpsTest, MultipliesByTheLayoutsOfTheIsa) {
  const absl::Status status = Run({});
  ASSERT_TRUE(status.ok()) << status.message();
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < kN / 2; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
      const int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
      float sum = i == 0 ? 1 : 0;
      for (int k = 0; k < kK; ++k)
        sum += static_cast<float>(NumberAt(row, k, 1) * NumberAt(column, k, 2));
      ASSERT_EQ(out_[static_cast<size_t>(thread) * (kN / 2) + static_cast<size_t>(i)], sum)
          << thread << " " << i;
    }
}

// What the machine finds and hardware does not.
class GroupMatrixFaultsTest : public GroupMatrixOpsTest {};

TEST_P(GroupMatrixFaultsTest, FindsWhatIsNotFencedForMatrixUnits) {
  EXPECT_THAT(std::string(Run({.proxy_fence = ""}).message()),
              HasSubstr("has not fenced for them"));
}

TEST_P(GroupMatrixFaultsTest, FindsRegistersThatAreNotFenced) {
  EXPECT_THAT(std::string(Run({.fence = ""}).message()), HasSubstr("no wgmma.fence"));
}

TEST_P(GroupMatrixFaultsTest, FindsMemoryThatChangesBeforeTheWait) {
  constexpr std::string_view kOverwrites =
      "bar.sync 0;\nmad.lo.u32 at, lane, 16, at;\nst.shared.b32 [at], 77;\nbar.sync 0;";
  EXPECT_THAT(std::string(Run({.before_wait = kOverwrites}).message()),
              HasSubstr("changed before it was waited for"));
}

const auto kForms =
    ::testing::Values(GroupForm{DType::kF16, false, false}, GroupForm{DType::kF16, true, false},
                      GroupForm{DType::kF16, false, true}, GroupForm{DType::kBF16, true, true});

std::string NameOfForm(const ::testing::TestParamInfo<GroupForm>& info) {
  return fmt::format("{}_{}_{}", Name(info.param.type), info.param.a_along_m, info.param.b_along_n);
}

INSTANTIATE_TEST_SUITE_P(All, GroupMatrixOpsTest, kForms, NameOfForm);
INSTANTIATE_TEST_SUITE_P(All, GroupMatrixFaultsTest, kForms, NameOfForm);

}  // namespace
}  // namespace forge::ptx
