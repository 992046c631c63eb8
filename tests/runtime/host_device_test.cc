// SPDX-License-Identifier: Apache-2.0
// Order, waiting, lifetimes and errors of devices whose memory is the host's.
#include "runtime/device/host_device.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <thread>

#include "runtime/device/reference_device.h"
#include "tests/support/gate.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using testing::Gate;

// Fails, or adds one to every byte of operand 1 after reading operand 0.
class AddOne final : public HostProgram {
 public:
  explicit AddOne(absl::Status status = absl::OkStatus()) : status_(std::move(status)) {}
  std::string_view kernel() const override { return "add_one"; }
  absl::Status Run(const HostArguments& a) const override {
    for (size_t i = 0; i < a.operands[1].size(); ++i)
      a.operands[1][i] = static_cast<uint8_t>(a.operands[0][i] + 1);
    return status_;
  }

 private:
  absl::Status status_;
};

class HostDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { device_ = *ReferenceDriver()->Open(0, {}); }

  BufferRef Filled(uint64_t bytes, uint8_t value) {
    BufferRef b = *device_->Allocate(Memory::kDevice, bytes);
    std::memset(device_->Map(*b)->data(), value, bytes);
    return b;
  }
  uint8_t First(const BufferRef& b) { return device_->Map(*b)->front(); }
  absl::StatusOr<SegmentRef> Record(const ProgramRef& program, int64_t bytes = 16) {
    const Step step{program, {{0, 0, bytes, false}, {1, 0, bytes, true}}, {}, "step 'one'"};
    const SlotSpec slots[] = {{16, true}, {16, true}};
    return device_->Record(
        {.steps = std::span(&step, 1), .slots = slots, .step_symbols = {}, .timestamps = true});
  }
  static SubmitArgs Args(std::span<const BufferRef> slots, std::span<const Point> wait = {}) {
    return {.slots = slots, .step_values = {}, .wait = wait, .cancel = nullptr};
  }

  DeviceRef device_;
};

TEST_F(HostDeviceTest, RunsASegmentAndTimesIt) {
  FORGE_ASSERT_OK_AND_ASSIGN(SegmentRef segment, Record(std::make_shared<AddOne>()));
  const BufferRef slots[] = {Filled(16, 4), Filled(16, 0)};
  FORGE_ASSERT_OK_AND_ASSIGN(Point done, device_->Submit(segment, Args(slots)));
  ASSERT_THAT(device_->Wait(done, -1), Succeeds());
  EXPECT_TRUE(device_->Reached(done));
  EXPECT_EQ(First(slots[1]), 5);
  FORGE_ASSERT_OK_AND_ASSIGN(std::vector<StepTime> times, device_->Timestamps(*segment));
  ASSERT_EQ(times.size(), 1u);
  EXPECT_LE(times[0].begin, times[0].end);
}

TEST_F(HostDeviceTest, WaitsForAnotherTimeline) {
  const auto gate = std::make_shared<Gate>();
  const Point go{gate, 3};
  const BufferRef a = Filled(16, 1), b = Filled(16, 2), c = Filled(16, 3);
  FORGE_ASSERT_OK_AND_ASSIGN(Point first, device_->Copy({a, 0, b, 0, 16}, std::span(&go, 1)));
  FORGE_ASSERT_OK_AND_ASSIGN(Point second, device_->Copy({b, 0, c, 0, 16}, {}));
  EXPECT_TRUE(absl::IsDeadlineExceeded(device_->Wait(second, 50'000'000)));
  EXPECT_FALSE(device_->Reached(first));
  gate->Open(3);
  ASSERT_THAT(device_->Wait(second, -1), Succeeds());
  EXPECT_EQ(First(c), 1);
}

TEST_F(HostDeviceTest, TwoDevicesWaitForEachOther) {
  const DeviceRef other = *ReferenceDriver()->Open(0, {});
  const auto gate = std::make_shared<Gate>();
  const Point go{gate, 1};
  const BufferRef a = Filled(16, 7), b = Filled(16, 0), c = Filled(16, 0);
  FORGE_ASSERT_OK_AND_ASSIGN(Point first, device_->Copy({a, 0, b, 0, 16}, std::span(&go, 1)));
  // The number is one that the other device has long reached on its own timeline.
  FORGE_ASSERT_OK_AND_ASSIGN(Point early, other->Copy({c, 0, c, 8, 8}, {}));
  ASSERT_THAT(other->Wait(early, -1), Succeeds());
  EXPECT_EQ(early.value, first.value);
  FORGE_ASSERT_OK_AND_ASSIGN(Point second, other->Copy({b, 0, c, 0, 16}, std::span(&first, 1)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(other->Wait(second, 30'000'000)));
  gate->Open(1);
  ASSERT_THAT(device_->Wait(second, -1), Succeeds());  // any device waits for any point
  EXPECT_EQ(First(c), 7);
}

TEST_F(HostDeviceTest, FailsWithWhatItWaitedFor) {
  const auto gate = std::make_shared<Gate>();
  const Point go{gate, 1};
  const BufferRef a = Filled(16, 1), b = Filled(16, 2);
  FORGE_ASSERT_OK_AND_ASSIGN(Point done, device_->Copy({a, 0, b, 0, 16}, std::span(&go, 1)));
  gate->Open(1, Internal("the producer failed"));
  EXPECT_THAT(device_->Wait(done, -1), Fails(absl::StatusCode::kInternal, "the producer failed"));
  EXPECT_EQ(First(b), 2);
}

TEST_F(HostDeviceTest, CancelsWhatWaits) {
  FORGE_ASSERT_OK_AND_ASSIGN(SegmentRef segment, Record(std::make_shared<AddOne>()));
  const Point never{std::make_shared<Gate>(), 1};
  const BufferRef slots[] = {Filled(16, 4), Filled(16, 0)};
  std::atomic<bool> cancel = false;
  SubmitArgs args = Args(slots, std::span(&never, 1));
  args.cancel = &cancel;
  FORGE_ASSERT_OK_AND_ASSIGN(Point done, device_->Submit(segment, args));
  cancel = true;
  EXPECT_TRUE(absl::IsAborted(device_->Wait(done, -1)));
  EXPECT_EQ(First(slots[1]), 0);
}

// Waits until another thread runs it too.
class Meeting final : public HostProgram {
 public:
  std::string_view kernel() const override { return "meeting"; }
  absl::Status Run(const HostArguments&) const override {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    const bool met =
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return inside_ == 2; });
    return met ? absl::OkStatus() : Internal("nobody came");
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int inside_ = 0;
};

TEST_F(HostDeviceTest, ThreadsRunAtOnce) {
  const auto program = std::make_shared<Meeting>();
  const auto run = [&] {
    const BufferRef slots[] = {Filled(16, 4), Filled(16, 0)};
    FORGE_ASSERT_OK_AND_ASSIGN(SegmentRef segment, Record(program));
    EXPECT_THAT(device_->Run(segment, Args(slots)), Succeeds());
  };
  std::thread other(run);
  run();
  other.join();
}

TEST_F(HostDeviceTest, RunsInTheCallerBehindWhatItWaitsFor) {
  const auto gate = std::make_shared<Gate>();
  const Point go{gate, 1};
  const BufferRef a = Filled(16, 4), slots[] = {Filled(16, 0), Filled(16, 0)};
  FORGE_ASSERT_OK_AND_ASSIGN(Point copied, device_->Copy({a, 0, slots[0], 0, 16}, {&go, 1}));
  FORGE_ASSERT_OK_AND_ASSIGN(SegmentRef segment, Record(std::make_shared<AddOne>()));
  std::thread opens([&] { gate->Open(1); });
  EXPECT_THAT(device_->Run(segment, Args(slots, {&copied, 1})), Succeeds());
  opens.join();
  EXPECT_EQ(First(slots[1]), 5);
}

TEST_F(HostDeviceTest, ComputesInLentMemory) {
  FORGE_ASSERT_OK_AND_ASSIGN(SegmentRef segment, Record(std::make_shared<AddOne>()));
  const BufferRef slots[] = {Filled(16, 4), Filled(16, 0)};
  std::vector<uint8_t> in(16, 7), out(16, 0);
  ASSERT_TRUE(device_->Lend(*slots[0], in.data()));
  ASSERT_TRUE(device_->Lend(*slots[1], out.data()));
  ASSERT_THAT(device_->Run(segment, Args(slots)), Succeeds());
  EXPECT_EQ(out, std::vector<uint8_t>(16, 8));
  for (const BufferRef& b : slots) device_->Lend(*b, nullptr);
  EXPECT_EQ(First(slots[1]), 0);
  ASSERT_THAT(device_->Run(segment, Args(slots)), Succeeds());
  EXPECT_EQ(First(slots[1]), 5);
  EXPECT_EQ(out[0], 8);
}

// Neither segment nor buffers are held by the caller when the worker gets to them.
TEST_F(HostDeviceTest, KeepsWhatItWasGiven) {
  const auto gate = std::make_shared<Gate>();
  const Point go{gate, 1};
  const BufferRef result = Filled(16, 0);
  Point done;
  {
    FORGE_ASSERT_OK_AND_ASSIGN(SegmentRef segment, Record(std::make_shared<AddOne>()));
    const BufferRef between = Filled(16, 0);
    const BufferRef slots[] = {Filled(16, 41), between};
    FORGE_ASSERT_OK_AND_ASSIGN(done, device_->Submit(segment, Args(slots, std::span(&go, 1))));
    FORGE_ASSERT_OK_AND_ASSIGN(done, device_->Copy({between, 0, result, 0, 16}, {}));
  }
  gate->Open(1);
  ASSERT_THAT(device_->Wait(done, -1), Succeeds());
  EXPECT_EQ(First(result), 42);
}

TEST_F(HostDeviceTest, APointOutlivesItsDevice) {
  const Point never{std::make_shared<Gate>(), 1};
  FORGE_ASSERT_OK_AND_ASSIGN(
      Point done, device_->Copy({Filled(16, 1), 0, Filled(16, 2), 0, 16}, std::span(&never, 1)));
  device_.reset();
  EXPECT_TRUE(done.timeline->Reached(done.value));
  EXPECT_TRUE(absl::IsAborted(done.timeline->Wait(done.value, -1)));
}

TEST_F(HostDeviceTest, TellsEveryWaiterWhatFailed) {
  FORGE_ASSERT_OK_AND_ASSIGN(SegmentRef segment,
                             Record(std::make_shared<AddOne>(Internal("it broke"))));
  const BufferRef slots[] = {Filled(16, 4), Filled(16, 0)};
  FORGE_ASSERT_OK_AND_ASSIGN(Point done, device_->Submit(segment, Args(slots)));
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(device_->Wait(done, -1), Fails(absl::StatusCode::kInternal, "step 'one'"));
}

// A device that lives long keeps the status of its latest failures alone.
TEST_F(HostDeviceTest, ForgetsFailuresOfLongAgo) {
  FORGE_ASSERT_OK_AND_ASSIGN(SegmentRef segment,
                             Record(std::make_shared<AddOne>(Internal("it broke"))));
  const BufferRef slots[] = {Filled(16, 4), Filled(16, 0)};
  std::vector<Point> done;
  for (int i = 0; i < 300; ++i) {
    FORGE_ASSERT_OK_AND_ASSIGN(done.emplace_back(), device_->Submit(segment, Args(slots)));
    EXPECT_FALSE(device_->Wait(done.back(), -1).ok());
  }
  EXPECT_THAT(device_->Wait(done.front(), -1), Succeeds());
  EXPECT_FALSE(device_->Wait(done[100], -1).ok());
}

TEST_F(HostDeviceTest, RefusesWhatDoesNotFit) {
  const BufferRef a = Filled(16, 1);
  EXPECT_TRUE(absl::IsOutOfRange(device_->Copy({a, 0, a, 8, 16}, {}).status()));
  EXPECT_TRUE(absl::IsOutOfRange(device_->Copy({a, UINT64_MAX, a, 0, 4}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Copy({nullptr, 0, a, 0, 4}, {}).status()));
  EXPECT_THAT(Record(std::make_shared<AddOne>(), 17),
              Fails(absl::StatusCode::kInternal, "step 'one'"));
  FORGE_ASSERT_OK_AND_ASSIGN(Point done, device_->Copy({a, 0, a, 8, 8}, {}));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Wait({done.timeline, 99}, -1)));
  EXPECT_TRUE(absl::IsResourceExhausted(device_->Allocate(Memory::kDevice, UINT64_MAX).status()));
}

TEST_F(HostDeviceTest, ImportsWithoutACopyAndReadOnly) {
  const Bytes bytes(std::vector<uint8_t>(64, 9));
  FORGE_ASSERT_OK_AND_ASSIGN(BufferRef imported, device_->Import(bytes));
  EXPECT_THAT(device_->Map(*imported), Fails(absl::StatusCode::kInvalidArgument, "read-only"));
  const BufferRef b = Filled(64, 0);
  FORGE_ASSERT_OK_AND_ASSIGN(Point done, device_->Copy({imported, 0, b, 0, 64}, {}));
  ASSERT_THAT(device_->Wait(done, -1), Succeeds());
  EXPECT_EQ(First(b), 9);
}

}  // namespace
}  // namespace forge
