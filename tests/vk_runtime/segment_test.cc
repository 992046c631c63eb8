// SPDX-License-Identifier: Apache-2.0
// Recording, replaying, rebinding, hazards, timestamps, cancelling.
#include "ir/ops/elementwise/elementwise.h"
#include "runtime/plan/staging.h"
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

// Timed steps run one after the other, and the barriers that see to it are counted too.
TEST_F(SegmentTest, CountsTheBarriersOfTimedSteps) {
  const uint64_t bytes = 32 * 32 * 4;
  const ProgramRef turn = Transpose(1, 32, 32);
  const auto step = [&](uint64_t from, uint64_t to) {
    return MakeStep(turn, {Use(0, from * bytes, bytes), Use(0, to * bytes, bytes, true)}, "turn");
  };
  const std::vector<Step> steps = {step(0, 1), step(0, 2), step(1, 3)};
  const std::vector<SlotSpec> slots = {{4 * bytes, false}};
  auto segment =
      device_->Record({.steps = steps, .slots = slots, .step_symbols = {}, .timestamps = true});
  ASSERT_OK(segment.status());
  Run(*segment, {Upload(Iota(4 * 32 * 32))});
  if (!device_->Timestamps(**segment).ok()) GTEST_SKIP() << "this queue has no timestamps";
  EXPECT_EQ((*segment)->barriers(), 2);
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

TEST_F(SegmentTest, RefusesTimesThatAreNotReady) {
  const auto x = Iota(64 * 64);
  const BufferRef a = Upload(x), b = Upload(x);
  const SegmentRef segment = OneTranspose(64, 64, true);
  Run(segment, {a, b});
  if (absl::IsUnimplemented(device_->Timestamps(*segment).status()))
    GTEST_SKIP() << "the device times nothing";
  device_->context()->fn.vkGetQueryPoolResults = [](auto...) { return VK_NOT_READY; };
  const absl::Status times = device_->Timestamps(*segment).status();
  EXPECT_NE(Message(times).find("VK_NOT_READY"), std::string_view::npos) << times;
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

// y = -x of `n` rows, where n is a step value.
class StepValueTest : public SegmentTest {
 protected:
  static constexpr int64_t kRows = 1000, kColumns = 3;
  static constexpr uint64_t kBytes = kRows * kColumns * sizeof(float);

  void Record(const ir::SymbolRef& n) {
    const ir::Types types(1, ir::Type::Tensor(DType::kF32, {ir::Dim(n), kColumns}));
    const ir::AnyOp op = ir::Neg{};
    const CompileRequest request{.op = &op, .in = types, .out = types, .name = "neg"};
    auto program = device_->Compile({&request, 1}, [](size_t) { return true; })[0];
    ASSERT_OK(program.status());
    const ir::Dim bytes = ir::Dim(n) * kColumns * static_cast<int64_t>(sizeof(float));
    const auto scalars = (*program)->scalars();
    EXPECT_FALSE(scalars.empty());
    const Step step{.program = *program,
                    .operands = {{.slot = 0, .offset = 0, .bytes = bytes},
                                 {.slot = 1, .offset = 0, .bytes = bytes, .writes = true}},
                    .scalars = {scalars.begin(), scalars.end()},
                    .label = "negated"};
    const std::vector<SlotSpec> slots = {{kBytes, true}, {kBytes, true}};
    const std::vector<ir::SymbolRef> symbols = {n};
    auto segment = device_->Record({{&step, 1}, slots, symbols});
    ASSERT_OK(segment.status());
    segment_ = *segment;
    x_.resize(kRows * kColumns);
    std::iota(x_.begin(), x_.end(), 1.0f);
    in_ = Upload(x_);
    zeros_ = Upload(std::vector<float>(x_.size()));
    out_ = Upload(std::vector<float>(x_.size()));
  }
  absl::StatusOr<Point> Submit(int64_t n) {
    const std::vector<BufferRef> slots = {in_, out_};
    return device_->Submit(segment_, Args(slots, std::span<const int64_t>(&n, 1)));
  }
  void Clear() {
    auto point = device_->Copy({zeros_, 0, out_, 0, kBytes}, {});
    ASSERT_OK(point.status());
    ASSERT_OK(device_->Wait(*point, -1));
  }
  std::vector<float> Expected(int64_t n) const {
    std::vector<float> y(x_.size());
    for (size_t i = 0; i < static_cast<size_t>(n * kColumns); ++i) y[i] = -x_[i];
    return y;
  }
  int Recordings() const { return static_cast<const VulkanSegment&>(*segment_).recordings(); }
  static ir::SymbolRef Rows() {
    return std::make_shared<const ir::Symbol>(
        ir::Symbol{.name = "n", .min = 0, .max = kRows, .divisor = 1, .when = ir::When::kStep});
  }

  SegmentRef segment_;
  std::vector<float> x_;
  BufferRef in_, out_, zeros_;
};

TEST_F(StepValueTest, ChangesWithoutAnotherRecording) {
  const uint32_t most = device_->context()->abilities().pushed_operands;
  for (const uint32_t pushed : std::set<uint32_t>{0, most}) {
    OpenGranted([&](Granted& g) { g.abilities.pushed_operands = pushed; });
    Record(Rows());
    for (const int64_t n : {7, 1000, 0, 512, 1}) {
      Clear();
      auto point = Submit(n);
      ASSERT_OK(point.status());
      ASSERT_OK(device_->Wait(*point, -1));
      EXPECT_EQ(Download<float>(out_), Expected(n)) << n;
      EXPECT_EQ(Recordings(), 1);
    }
  }
}

TEST_F(StepValueTest, StaysThatOfItsOwnSubmission) {
  Record(Rows());
  std::vector<Point> points;
  for (int64_t n = 1; n <= 50; ++n) {
    auto point = Submit(n);
    ASSERT_OK(point.status());
    points.push_back(*point);
  }
  ASSERT_OK(device_->Wait(points.back(), -1));
  EXPECT_EQ(Download<float>(out_), Expected(50));
  // Once, and once more to be submitted while it runs.
  EXPECT_LE(Recordings(), 2);
}

TEST_F(StepValueTest, RefusesMoreThanABufferHolds) {
  Record(Rows());
  EXPECT_TRUE(absl::IsOutOfRange(Submit(kRows + 1).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Submit(-1).status()));
  EXPECT_NE(Message(Submit(-1).status()).find("negated"), std::string_view::npos);
  ASSERT_OK(Submit(kRows).status());
}

// With and without timeline semaphores.
class SubmissionTest : public SegmentTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    SegmentTest::SetUp();
    if (IsSkipped()) return;
    if (GetParam() && !device_->context()->abilities().timeline_semaphore)
      GTEST_SKIP() << "the device has no timeline semaphores";
    OpenGranted([&](Granted& g) { g.abilities.timeline_semaphore = GetParam(); });
    submit_ = std::exchange(device_->context()->fn.vkQueueSubmit, Count);
    submissions_ = batches_ = 0;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL Count(VkQueue queue, uint32_t count,
                                              const VkSubmitInfo* batches, VkFence fence) {
    ++submissions_;
    batches_ += count;
    fences_ += fence != VK_NULL_HANDLE;
    return submit_(queue, count, batches, fence);
  }
  static inline PFN_vkQueueSubmit submit_;
  static inline uint32_t submissions_, batches_, fences_;
};
INSTANTIATE_TEST_SUITE_P(, SubmissionTest, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "TimelineSemaphore" : "Fences"; });

TEST_P(SubmissionTest, IsOneForASegmentOfManyPieces) {
  const auto x = Iota(256 * 256);
  const BufferRef a = Upload(x), b = Upload(x);
  const ProgramRef quick = Transpose(1, 256, 256);
  VulkanProgram::Parts parts;
  const auto launches = static_cast<const VulkanProgram&>(*quick).launches();
  parts.launches.assign(launches.begin(), launches.end());
  parts.launches[0].seconds = 1;  // of several pieces
  const std::vector<Step> steps = {
      MakeStep(std::make_shared<VulkanProgram>(std::move(parts)),
               {Use(0, 0, x.size() * 4), Use(1, 0, x.size() * 4, true)}, "slow")};
  const std::vector<SlotSpec> slots = {{x.size() * 4, true}, {x.size() * 4, true}};
  auto segment = device_->Record({steps, slots, {}});
  ASSERT_OK(segment.status());
  submissions_ = batches_ = fences_ = 0;
  Run(*segment, {a, b});
  const size_t pieces = static_cast<VulkanSegment&>(**segment).last_recording()->pieces().size();
  EXPECT_GT(pieces, 2u);
  EXPECT_EQ(submissions_, 1u);
  EXPECT_EQ(batches_, pieces);
  EXPECT_EQ(fences_, GetParam() ? 0u : 1u);
  EXPECT_EQ(Download<uint32_t>(b), Transposed(x, 1, 256, 256));
}

TEST_P(SubmissionTest, FollowsThoseBefore) {
  const auto x = Iota(64 * 48);
  const BufferRef a = Upload(x), b = Upload(x);
  const SegmentRef there = OneTranspose(64, 48), back = OneTranspose(48, 64);
  std::vector<Point> points;
  for (int i = 0; i < 20; ++i) {
    auto first = device_->Submit(there, Args(std::vector{a, b}));
    auto second = device_->Submit(back, Args(std::vector{b, a}));
    ASSERT_OK(first.status());
    ASSERT_OK(second.status());
    points.push_back(*second);
  }
  ASSERT_OK(device_->Wait(points[7], -1));
  EXPECT_TRUE(device_->Reached(points[3]));
  ASSERT_OK(device_->Wait(points.back(), -1));
  EXPECT_EQ(Download<uint32_t>(a), x);
}

TEST_P(SubmissionTest, UploadsOverlapWithCopies) {
  std::vector<uint8_t> bytes(3 * kStagingBytes + 1234);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 31 >> 5);
  auto to = device_->Allocate(Memory::kDevice, bytes.size() + 7);
  ASSERT_OK(to.status());
  submissions_ = 0;
  ASSERT_OK(WriteBuffer(*device_, *to, 7, bytes));
  EXPECT_EQ(submissions_, 4u);
  std::vector<uint8_t> back(bytes.size());
  ASSERT_OK(ReadBuffer(*device_, *to, 7, back));
  EXPECT_EQ(back, bytes);
}

}  // namespace
}  // namespace forge::vk
