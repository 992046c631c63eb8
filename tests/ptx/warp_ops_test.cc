// SPDX-License-Identifier: Apache-2.0
// Opcodes in which lanes meet, each on one whole warp, against their definitions in the PTX ISA.
#include <gtest/gtest.h>

#include <functional>

#include "tests/ptx/hardware.h"
#include "tests/ptx/one_op.h"

namespace forge::ptx {
namespace {

// Lane i has a = values(i) and b = i.
std::vector<uint64_t> OnWarp(const std::string& instruction,
                             const std::function<uint64_t(int)>& values, int bits = 32) {
  std::vector<std::vector<uint64_t>> rows;
  for (int i = 0; i < 32; ++i) rows.push_back({values(i), static_cast<uint64_t>(i)});
  const auto got = Execute(instruction, {bits, 32, 32}, rows);
  EXPECT_TRUE(got.ok()) << instruction << ": " << got.status().message();
  return got.ok() ? *got : std::vector<uint64_t>(32, ~uint64_t{0});
}

uint64_t Square(int i) { return static_cast<uint64_t>(i) * i + 5; }

TEST(WarpOpsTest, Shuffles) {
  const auto xored = OnWarp("shfl.sync.bfly.b32 d, a, 5, 31, -1", Square);
  const auto up = OnWarp("shfl.sync.up.b32 d, a, 3, 0, -1", Square);
  const auto down = OnWarp("shfl.sync.down.b32 d, a, 3, 31, -1", Square);
  const auto from = OnWarp("shfl.sync.idx.b32 d, a, 9, 31, -1", Square);
  // Segments of 8 lanes: the mask of c is 0b11000.
  const auto segments = OnWarp("shfl.sync.down.b32 d, a, 3, 0x181f, -1", Square);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(xored[i], Square(i ^ 5));
    EXPECT_EQ(up[i], Square(i < 3 ? i : i - 3));
    EXPECT_EQ(down[i], Square(i + 3 > 31 ? i : i + 3));
    EXPECT_EQ(from[i], Square(9));
    EXPECT_EQ(segments[i], Square(i % 8 + 3 > 7 ? i : i + 3));
  }
}

TEST(WarpOpsTest, LoadsOfVectorsMayEndInWhatNobodyWrote) {
  const auto load = [](const std::string& used) {
    return Execute(
        "{ .shared .align 8 .b32 word[2]; .reg .b32 x, y; st.shared.b32 [word], a; "
        "ld.shared.v2.b32 {x, y}, [word]; mov.b32 d, " +
            used + "; }",
        {32, 32}, {{7}});
  };
  EXPECT_EQ(load("x")->at(0), 7u);
  if (RunsOnHardware()) return;  // where the other element is anything, and nothing is found
  EXPECT_EQ(load("y")->at(0), 0xffffffffu);
  const auto alone = Execute(
      "{ .shared .align 8 .b32 word[2]; st.shared.b32 [word], a; "
      "ld.shared.b32 d, [word+4]; }",
      {32, 32}, {{7}});
  EXPECT_FALSE(alone.ok());
}

TEST(WarpOpsTest, ShufflesTellWhetherTheSourceIsInRange) {
  const auto p = OnWarp(
      "{ .reg .pred q; .reg .b32 t; shfl.sync.up.b32 t|q, a, 1, 0, -1; selp.b32 d, 1, 0, q; }",
      Square);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(p[i], i > 0 ? 1u : 0u);
}

TEST(WarpOpsTest, Votes) {
  const auto odd = [](int i) { return static_cast<uint64_t>(i & 1); };
  const auto vote = [&](const std::string& form, const std::function<uint64_t(int)>& values) {
    return OnWarp("{ .reg .pred p, q; setp.ne.u32 p, a, 0; vote.sync." + form +
                      ".pred q, p, -1; selp.b32 d, 1, 0, q; }",
                  values)[7];
  };
  EXPECT_EQ(OnWarp("{ .reg .pred p; setp.ne.u32 p, a, 0; vote.sync.ballot.b32 d, p, -1; }", odd)[3],
            0xaaaaaaaau);
  EXPECT_EQ(vote("any", odd), 1u);
  EXPECT_EQ(vote("all", odd), 0u);
  EXPECT_EQ(vote("uni", odd), 0u);
  EXPECT_EQ(vote("all", [](int) { return 1; }), 1u);
  EXPECT_EQ(vote("uni", [](int) { return 0; }), 1u);
  EXPECT_EQ(vote("any", [](int) { return 0; }), 0u);
}

TEST(WarpOpsTest, VotesOfSeveralMasks) {
  // The halves of the warp vote apart, though they execute together.
  const auto votes = OnWarp(
      "{ .reg .pred p, q; .reg .b32 m; setp.ge.u32 p, b, 16; selp.b32 m, 0xffff0000, 0x0000ffff, "
      "p; "
      "setp.ne.u32 q, a, 0; vote.sync.ballot.b32 d, q, m; }",
      [](int i) { return i % 3 == 0 ? 1 : 0; });
  uint32_t every_third = 0;
  for (int i = 0; i < 32; i += 3) every_third |= uint32_t{1} << i;
  EXPECT_EQ(votes[2], every_third & 0xffffu);
  EXPECT_EQ(votes[20], every_third & 0xffff0000u);
}

TEST(WarpOpsTest, MatchReduxElectAndActiveMask) {
  const auto mod = [](int i) { return static_cast<uint64_t>(i % 4); };
  const auto same = OnWarp("match.any.sync.b32 d, a, -1", mod);
  const auto all = OnWarp("match.all.sync.b32 d, a, -1", [](int) { return 9; });
  const auto none = OnWarp("match.all.sync.b32 d, a, -1", mod);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(same[i], uint64_t{0x11111111} << (i % 4));
  EXPECT_EQ(all[0], 0xffffffffu);
  EXPECT_EQ(none[0], 0u);
  EXPECT_EQ(OnWarp("redux.sync.add.u32 d, a, -1", mod)[0], 48u);
  EXPECT_EQ(
      OnWarp("redux.sync.max.s32 d, a, -1", [](int i) { return static_cast<uint32_t>(i - 40); })[5],
      0xfffffff7u);
  EXPECT_EQ(
      OnWarp("redux.sync.min.u32 d, a, -1", [](int i) { return static_cast<uint32_t>(i + 7); })[5],
      7u);
  EXPECT_EQ(OnWarp("redux.sync.or.b32 d, a, -1", mod)[9], 3u);
  EXPECT_EQ(OnWarp("{ .reg .pred p; elect.sync d|p, -1; selp.b32 d, 1, 0, p; }", mod)[0], 1u);
  const auto active = OnWarp(
      "{ .reg .pred p; mov.b32 d, 0; setp.lt.u32 p, b, 5; @!p bra SKIP; activemask.b32 d; SKIP: "
      "bar.warp.sync -1; }",
      mod);
  EXPECT_EQ(active[0], 31u);
  EXPECT_EQ(active[5], 0u);
}

TEST(WarpOpsTest, BarriersReduce) {
  const auto odd = [](int i) { return static_cast<uint64_t>(i & 1); };
  EXPECT_EQ(OnWarp("{ .reg .pred p; setp.ne.u32 p, a, 0; bar.red.popc.u32 d, 0, p; }", odd)[0],
            16u);
  EXPECT_EQ(OnWarp("{ .reg .pred p, q; setp.ne.u32 p, a, 0; barrier.cta.red.or.pred q, 0, p; "
                   "selp.b32 d, 1, 0, q; }",
                   odd)[0],
            1u);
  EXPECT_EQ(OnWarp("{ .reg .pred p, q; setp.ne.u32 p, a, 0; bar.red.and.pred q, 0, !p; selp.b32 d, "
                   "1, 0, q; }",
                   odd)[0],
            0u);
}

TEST(WarpOpsTest, LanesMeetAgainAfterADivergentLoop) {
  // Lane i adds 1 i times; then all vote.
  const auto d = OnWarp(
      "{ .reg .pred p; .reg .b32 n; mov.b32 n, 0; mov.b32 d, 0; LOOP: setp.ge.u32 p, n, b; @p bra "
      "DONE; "
      "add.u32 n, n, 1; bra LOOP; DONE: redux.sync.add.u32 d, n, -1; }",
      Square);
  EXPECT_EQ(d[0], 31u * 32 / 2);
}

TEST(WarpOpsTest, Atomics) {
  const std::string declare =
      "{ .shared .align 8 .b32 word[2]; .reg .pred p; setp.eq.u32 p, b, 0; ";
  const auto after = [&](const std::string& initial, const std::string& atomic,
                         int type_bits = 32) {
    const std::string bits = std::to_string(type_bits);
    return OnWarp(declare + "@p st.shared.b" + bits + " [word], " + initial + "; bar.sync 0; " +
                      atomic + (atomic.starts_with('{') ? " " : "; ") + "bar.sync 0; ld.shared.b" +
                      bits + " d, [word]; }",
                  Square, type_bits)[0];
  };
  EXPECT_EQ(after("0", "red.shared.add.u32 [word], b"), 31u * 32 / 2);
  EXPECT_EQ(after("100", "red.shared.min.s32 [word], b"), 0u);
  EXPECT_EQ(after("3", "red.shared.max.u32 [word], b"), 31u);
  EXPECT_EQ(after("0", "red.shared.xor.b32 [word], b"), 0u);
  EXPECT_EQ(after("0", "red.shared.or.b32 [word], b"), 31u);
  EXPECT_EQ(after("0", "red.shared.inc.u32 [word], 9"), 2u);  // 32 steps through 0..9
  EXPECT_EQ(after("0", "red.shared.dec.u32 [word], 9"), 8u);
  EXPECT_EQ(after("0", "red.shared.add.f32 [word], 0f3F000000"), BitsOf(16.0f));
  EXPECT_EQ(
      after("0", "{ .reg .b32 v; mov.b32 v, 0x3c003800; red.shared.add.noftz.f16x2 [word], v; }"),
      0x50004c00u);  // 32 and 16
  EXPECT_EQ(after("0", "{ .reg .b64 one; mov.b64 one, 1; red.shared.add.u64 [word], one; }", 64),
            32u);
  EXPECT_EQ(after("7", "{ .reg .b32 t; atom.shared.cas.b32 t, [word], 7, b; }"), 0u);
  EXPECT_EQ(after("7", "{ .reg .b32 t; atom.shared.exch.b32 t, [word], 4; }"), 4u);
}

}  // namespace
}  // namespace forge::ptx
