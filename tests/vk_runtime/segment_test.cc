// SPDX-License-Identifier: Apache-2.0
// Recording, replaying, rebinding, hazards, timestamps, cancelling.
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class SegmentTest : public VulkanRunTest {
 protected:
  // x [rows, cols] in slot 0 becomes y [cols, rows] in slot 1.
  SegmentRef OneTranspose(int64_t rows, int64_t cols, bool timestamps = false) {
    const uint64_t bytes = static_cast<uint64_t>(rows * cols * 4);
    const std::vector<Step> steps = {
        MakeStep(Transpose(1, rows, cols), {Use(0, 0, bytes), Use(1, 0, bytes, true)}, "turn")};
    const std::vector<SlotSpec> slots = {{bytes, true}, {bytes, true}};
    auto segment = device_->Record({steps, slots, {}, timestamps});
    EXPECT_TRUE(segment.ok()) << Message(segment.status());
    return *segment;
  }
  void Run(const SegmentRef& segment, const std::vector<BufferRef>& slots) {
    auto point = device_->Submit(segment, Args(slots));
    ASSERT_OK(point.status());
    ASSERT_OK(device_->Wait(*point, -1));
  }
};

TEST_F(SegmentTest, RunsAKernelOfOddShape) {
  const auto x = Iota(3 * 37 * 65);
  const BufferRef in = Upload(x), out = Upload(std::vector<uint32_t>(x.size()));
  const std::vector<Step> steps = {
      MakeStep(Transpose(3, 37, 65), {Use(0, 0, in->size()), Use(1, 0, in->size(), true)}, "turn")};
  const std::vector<SlotSpec> slots = {{in->size(), true}, {in->size(), true}};
  auto segment = device_->Record({steps, slots, {}});
  ASSERT_OK(segment.status());
  Run(*segment, {in, out});
  EXPECT_EQ(Download<uint32_t>(out), Transposed(x, 3, 37, 65));
}

TEST_F(SegmentTest, ReplaysAndRebinds) {
  const auto a = Iota(40 * 50), b = Iota(40 * 50, 7);
  const BufferRef in_a = Upload(a), in_b = Upload(b);
  const BufferRef out_a = Upload(std::vector<uint32_t>(a.size()));
  const BufferRef out_b = Upload(std::vector<uint32_t>(b.size()));
  const SegmentRef segment = OneTranspose(40, 50);
  for (int i = 0; i < 3; ++i) {
    Run(segment, {in_a, out_a});
    Run(segment, {in_b, out_b});
  }
  EXPECT_EQ(Download<uint32_t>(out_a), Transposed(a, 1, 40, 50));
  EXPECT_EQ(Download<uint32_t>(out_b), Transposed(b, 1, 40, 50));
}

TEST_F(SegmentTest, SubmitsManyWithoutWaiting) {
  const auto x = Iota(64 * 64);
  const BufferRef a = Upload(x), b = Upload(std::vector<uint32_t>(x.size()));
  const SegmentRef segment = OneTranspose(64, 64);
  Point last;
  for (int i = 0; i < 21; ++i) {
    const std::vector<BufferRef> slots = i % 2 == 0 ? std::vector{a, b} : std::vector{b, a};
    auto point = device_->Submit(segment, Args(slots, {}, std::span(&last, i == 0 ? 0 : 1)));
    ASSERT_OK(point.status());
    EXPECT_GT(point->value, last.value);
    last = *point;
  }
  ASSERT_OK(device_->Wait(last, -1));
  EXPECT_TRUE(device_->Reached(last));
  EXPECT_EQ(Download<uint32_t>(b), Transposed(x, 1, 64, 64));
}

TEST_F(SegmentTest, PutsBarriersOnlyWhereRangesMeet) {
  const uint64_t bytes = 32 * 32 * 4;
  const ProgramRef turn = Transpose(1, 32, 32);
  const auto step = [&](uint64_t from, uint64_t to) {
    return MakeStep(turn, {Use(0, from * bytes, bytes), Use(0, to * bytes, bytes, true)}, "turn");
  };
  // Two independent steps; one that reads what they wrote, one that overwrites what it read.
  const std::vector<Step> steps = {step(0, 1), step(0, 2), step(1, 3), step(2, 1)};
  const std::vector<SlotSpec> slots = {{4 * bytes, false}};
  const auto x = Iota(4 * 32 * 32);
  const BufferRef arena = Upload(x);
  auto segment = device_->Record({steps, slots, {}});
  ASSERT_OK(segment.status());
  Run(*segment, {arena});
  EXPECT_EQ((*segment)->barriers(), 2);
  const auto y = Download<uint32_t>(arena);
  EXPECT_TRUE(std::equal(y.begin() + 3 * 1024, y.end(), x.begin()));
}

// The parts of a kernel behind a cut share a submission with what comes next.
TEST_F(SegmentTest, PutsABarrierBehindAKernelThatWasCut) {
  const ScopedEnvironment piece("FORGE_VK_PIECE_MS", "1");
  Open();
  constexpr uint64_t kSide = 4096, kBytes = kSide * kSide * 4, kSmall = 32 * 32 * 4;
  const std::vector<Step> steps = {
      MakeStep(Transpose(1, kSide, kSide), {Use(0, 0, kBytes), Use(1, 0, kBytes, true)}, "large"),
      MakeStep(Transpose(1, 32, 32), {Use(1, 0, kSmall), Use(2, 0, kSmall, true)}, "small")};
  const std::vector<SlotSpec> slots = {{kBytes, false}, {kBytes, false}, {kSmall, false}};
  auto segment = device_->Record({steps, slots, {}});
  ASSERT_OK(segment.status());
  const BufferRef a = Upload(std::vector<uint32_t>(kSide * kSide));
  const BufferRef b = Upload(std::vector<uint32_t>(kSide * kSide));
  Run(*segment, {a, b, Upload(std::vector<uint32_t>(1024))});
  EXPECT_EQ((*segment)->barriers(), 1);
}

// Operands are pushed, or described by sets where they are too many or nothing can be pushed; both
// outlast a cut.
TEST_F(SegmentTest, BindsOperandsBothWays) {
  constexpr int64_t kSide = 1024;
  const auto x = Iota(kSide * kSide);
  const uint32_t most = device_->context()->abilities().pushed_operands;
  for (const uint32_t pushed : std::set<uint32_t>{0, std::min(most, 1u), most}) {
    OpenGranted([&](Granted& g) { g.abilities.pushed_operands = pushed; },
                {.piece_nanoseconds = 1'000'000});
    const ProgramRef program = Transpose(1, kSide, kSide);
    EXPECT_EQ(static_cast<const VulkanProgram&>(*program).launches()[0].pipeline->pushed,
              pushed >= 2);
    const BufferRef in = Upload(x), out = Upload(std::vector<uint32_t>(x.size()));
    Run(OneTranspose(kSide, kSide), {in, out});
    EXPECT_EQ(Download<uint32_t>(out), Transposed(x, 1, kSide, kSide));
  }
}

// By what the device was measured to reach.
TEST_F(SegmentTest, CutsSlowWork) {
  constexpr int64_t kSide = 256;
  const auto pieces = [&](double bytes) {
    OpenGranted([&](Granted& g) { g.rates = Rates{.flops = bytes, .bytes = bytes}; });
    const SegmentRef segment = OneTranspose(kSide, kSide);
    const std::vector<uint32_t> x(kSide * kSide);
    Run(segment, {Upload(x), Upload(x)});
    return static_cast<const VulkanSegment&>(*segment).last_recording()->pieces().size();
  };
  EXPECT_EQ(pieces(1e12), 1u);
  EXPECT_GT(pieces(2e6), 2u);
}

TEST_F(SegmentTest, CopiesBetweenSlotsAsAStep) {
  const auto x = Iota(1000);
  const BufferRef a = Upload(x), b = Upload(std::vector<uint32_t>(2000));
  const std::vector<Step> steps = {
      MakeStep(nullptr, {Use(0, 0, 4000), Use(1, 256, 4000, true)}, "copy")};
  const std::vector<SlotSpec> slots = {{4000, true}, {8000, true}};
  auto segment = device_->Record({steps, slots, {}});
  ASSERT_OK(segment.status());
  Run(*segment, {a, b});
  const auto y = Download<uint32_t>(b);
  EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin() + 64));
}

TEST_F(SegmentTest, SkipsEmptyWork) {
  const BufferRef a = Upload(Iota(4));
  const std::vector<Step> steps = {
      MakeStep(Transpose(0, 5, 5), {Use(0, 0, 0), Use(1, 0, 0, true)}, "none"),
      MakeStep(nullptr, {Use(0, 0, 0), Use(1, 0, 0, true)}, "copy")};
  const std::vector<SlotSpec> slots = {{0, true}, {0, true}};
  auto segment = device_->Record({steps, slots, {}});
  ASSERT_OK(segment.status());
  Run(*segment, {a, nullptr});
}

TEST_F(SegmentTest, RefusesWhatDoesNotFit) {
  const SegmentRef segment = OneTranspose(32, 32);
  const BufferRef small = Upload(Iota(16)), right = Upload(Iota(1024));
  EXPECT_TRUE(
      absl::IsInvalidArgument(device_->Submit(segment, Args(std::vector{small, right})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Submit(segment, Args(std::vector{right})).status()));
  const std::vector<Step> steps = {
      MakeStep(nullptr, {Use(0, 256, 4096), Use(1, 0, 4096, true)}, "conv 'stem'")};
  const std::vector<SlotSpec> slots = {{4096, true}, {4096, true}};
  auto outside = device_->Record({steps, slots, {}});
  ASSERT_OK(outside.status());
  const absl::Status refused = device_->Submit(*outside, Args(std::vector{right, right})).status();
  EXPECT_TRUE(absl::IsOutOfRange(refused));
  EXPECT_NE(Message(refused).find("conv 'stem'"), std::string_view::npos);
}

TEST_F(SegmentTest, TimesEveryStep) {
  const auto x = Iota(256 * 256);
  const BufferRef a = Upload(x), b = Upload(x);
  const SegmentRef segment = OneTranspose(256, 256, true);
  Run(segment, {a, b});
  auto times = device_->Timestamps(*segment);
  if (absl::IsUnimplemented(times.status())) GTEST_SKIP() << Message(times.status());
  ASSERT_OK(times.status());
  ASSERT_EQ(times->size(), 1u);
  EXPECT_GE((*times)[0].end, (*times)[0].begin);
  EXPECT_LT((*times)[0].end - (*times)[0].begin, 10'000'000'000u);
}

TEST_F(SegmentTest, StopsBetweenPiecesWhenCancelled) {
  // A kernel said to take seconds is submitted in pieces.
  const auto x = Iota(256 * 256);
  const ProgramRef quick = Transpose(1, 256, 256);
  VulkanProgram::Parts parts;
  const auto launches = static_cast<const VulkanProgram&>(*quick).launches();
  parts.launches.assign(launches.begin(), launches.end());
  parts.launches[0].seconds = 3;
  const auto slow = std::make_shared<VulkanProgram>(std::move(parts));
  const std::vector<Step> steps = {
      MakeStep(slow, {Use(0, 0, x.size() * 4), Use(1, 0, x.size() * 4, true)}, "slow")};
  const std::vector<SlotSpec> slots = {{x.size() * 4, true}, {x.size() * 4, true}};
  auto segment = device_->Record({steps, slots, {}});
  ASSERT_OK(segment.status());
  const BufferRef a = Upload(x), b = Upload(x);
  const std::vector<BufferRef> buffers = {a, b};
  std::atomic<bool> cancel{false};
  SubmitArgs args = Args(buffers);
  args.cancel = &cancel;
  auto point = device_->Submit(*segment, args);
  ASSERT_OK(point.status());
  ASSERT_OK(device_->Wait(*point, -1));
  EXPECT_EQ(Download<uint32_t>(b), Transposed(x, 1, 256, 256));
  cancel = true;
  point = device_->Submit(*segment, args);
  ASSERT_OK(point.status());
  EXPECT_TRUE(absl::IsAborted(device_->Wait(*point, -1)));
  EXPECT_TRUE(device_->Reached(*point));
  ASSERT_OK(device_->Health());
}

TEST_F(SegmentTest, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto x = Iota(64 * 48, t);
      const BufferRef in = Upload(x), out = Upload(std::vector<uint32_t>(x.size()));
      const SegmentRef segment = OneTranspose(64, 48);
      for (int i = 0; i < 5; ++i) Run(segment, {in, out});
      for (int i = 0; i < 100; ++i) Run(OneTranspose(64, 48), {in, out});
      EXPECT_EQ(Download<uint32_t>(out), Transposed(x, 1, 64, 48));
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(SegmentTest, ReadsStepSymbolsAtEachReplay) {
  const auto n = std::make_shared<const ir::Symbol>(
      ir::Symbol{.name = "n", .min = 0, .max = 3, .divisor = 1, .when = ir::When::kStep});
  const auto x = Iota(4 * 64);
  const BufferRef a = Upload(x), b = Upload(std::vector<uint32_t>(64));
  const std::vector<Step> steps = {MakeStep(
      nullptr, {{.slot = 0, .offset = ir::Dim(n) * 256, .bytes = 256}, Use(1, 0, 256, true)},
      "row")};
  const std::vector<SlotSpec> slots = {{1024, false}, {256, true}};
  const std::vector<ir::SymbolRef> symbols = {n};
  auto segment = device_->Record({steps, slots, symbols});
  ASSERT_OK(segment.status());
  for (int64_t row : {2, 0, 3}) {
    auto point =
        device_->Submit(*segment, Args(std::vector{a, b}, std::span<const int64_t>(&row, 1)));
    ASSERT_OK(point.status());
    ASSERT_OK(device_->Wait(*point, -1));
    EXPECT_EQ(Download<uint32_t>(b)[0], 64 * row);
  }
}

}  // namespace
}  // namespace forge::vk
