// SPDX-License-Identifier: Apache-2.0
// The device on a driver that computes nothing: memory, submissions and what goes wrong. Kernels
// are compiled where tests/lab/fetch-cuda has brought NVRTC.
#include "cuda_runtime/device/device.h"

#include <gmock/gmock.h>

#include "ir/ops/elementwise/elementwise.h"
#include "tests/cuda_runtime/fake_api.h"
#include "tests/cuda_runtime/nvrtc.h"
#include "tests/support/scoped_environment.h"
#include "tests/support/temp_folder.h"

namespace forge::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CudaDeviceTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    DeviceFacts facts;
    facts.name = "fake";
    facts.capability = 80;
    facts.memory_bytes = 1 << 20;
    const auto context = Context::Create(FakeApi(), facts);
    ASSERT_TRUE(context.ok());
    context_ = *context;
    Open(FetchedNvrtc(), false);
    live_ = driver_.objects.size();
  }
  void Open(absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc, bool cache) {
    auto device = CudaDevice::Open({context_, {.name = "fake"}, std::move(nvrtc), nullptr, false},
                                   {.threads = 4, .cache = cache});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
  }
  BufferRef Buffer(Memory kind, uint64_t bytes = 1024) {
    auto b = device_->Allocate(kind, bytes);
    EXPECT_TRUE(b.ok()) << b.status();
    return b.ok() ? *b : nullptr;
  }
  // x + y of f32[100]: operands 0 and 1, result 2; null without NVRTC.
  absl::StatusOr<ProgramRef> Sum() {
    const ir::Types in(2, ir::Type::Tensor(DType::kF32, {100})), out(1, in[0]);
    const ir::AnyOp add = ir::Add{};
    const CompileRequest request{.op = &add, .in = in, .out = out, .name = "sum"};
    return device_->Compile({&request, 1}, [](size_t) { return true; })[0];
  }
  absl::StatusOr<SegmentRef> Record(const Step& step, bool timestamps = false) {
    const SlotSpec slots[] = {{1024, true}, {1024, true}, {1024, true}};
    return device_->Record({.steps = {&step, 1}, .slots = slots, .timestamps = timestamps});
  }
  static Operand Whole(uint32_t slot, bool writes = false) {
    return {.slot = slot, .offset = 0, .bytes = 400, .writes = writes};
  }
  Step CopyStep() {
    return {.program = nullptr, .operands = {Whole(0), Whole(1, true)}, .label = "copies"};
  }
  absl::Status RunCopy() {
    FORGE_ASSIGN_OR_RETURN(const SegmentRef segment, Record(CopyStep()));
    const BufferRef slots[] = {Buffer(Memory::kDevice), Buffer(Memory::kDevice), nullptr};
    return device_->Run(segment, {.slots = slots});
  }

  ContextRef context_;
  std::shared_ptr<CudaDevice> device_;
  size_t live_ = 0;
};

TEST_F(CudaDeviceTest, CopiesThroughPinnedMemory) {
  const BufferRef up = Buffer(Memory::kUpload), mid = Buffer(Memory::kDevice),
                  down = Buffer(Memory::kReadback);
  (*device_->Map(*up))[7] = 42;
  const auto first = device_->Copy({up, 0, mid, 256, 100}, {});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = device_->Copy({mid, 256, down, 1, 100}, {&*first, 1});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(device_->Wait(*second, -1).ok());
  EXPECT_EQ((*device_->Map(*down))[8], 42);
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Map(*mid).status()));
}

TEST_F(CudaDeviceTest, FreesWhatItAllocated) {
  ASSERT_TRUE(RunCopy().ok());
  device_->MemoryLeft();
  EXPECT_EQ(driver_.objects.size(), live_);
}

TEST_F(CudaDeviceTest, SaysHowMuchMemoryThereIs) {
  const absl::Status beyond = device_->Allocate(Memory::kDevice, 3 << 20).status();
  EXPECT_TRUE(absl::IsResourceExhausted(beyond));
  EXPECT_THAT(beyond.message(), HasSubstr("3145728 bytes; 1000 bytes of 2000 are available"));
  driver_.allocate = kCuOutOfMemory;
  EXPECT_TRUE(absl::IsResourceExhausted(device_->Allocate(Memory::kDevice, 16).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(device_->Allocate(Memory::kReadback, 16).status()));
  driver_.allocate = kCuSuccess;
  EXPECT_TRUE(RunCopy().ok());
}

TEST_F(CudaDeviceTest, RefusesCopiesOutsideTheirBuffers) {
  const BufferRef a = Buffer(Memory::kDevice), b = Buffer(Memory::kDevice);
  EXPECT_TRUE(absl::IsOutOfRange(device_->Copy({a, 1000, b, 0, 25}, {}).status()));
  EXPECT_TRUE(absl::IsOutOfRange(device_->Copy({a, UINT64_MAX, b, 0, 2}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Copy({a, 0, a, 50, 100}, {}).status()));
}

TEST_F(CudaDeviceTest, RefusesOperandsOutsideTheirBuffers) {
  Step step = CopyStep();
  step.operands[1].offset = 768;
  const auto segment = Record(step);
  ASSERT_TRUE(segment.ok());
  const BufferRef slots[] = {Buffer(Memory::kDevice), Buffer(Memory::kDevice), nullptr};
  const absl::Status s = device_->Run(*segment, {.slots = slots});
  EXPECT_TRUE(absl::IsOutOfRange(s)) << s;
  EXPECT_THAT(s.message(), HasSubstr("copies"));
  step.operands[1].slot = 3;
  EXPECT_TRUE(absl::IsOutOfRange(Record(step).status()));
}

TEST_F(CudaDeviceTest, WaitsNoLongerThanItIsTold) {
  const auto segment = Record(CopyStep());
  ASSERT_TRUE(segment.ok());
  const BufferRef slots[] = {Buffer(Memory::kDevice), Buffer(Memory::kDevice), nullptr};
  driver_.query_event = kCuNotReady;
  const auto point = device_->Submit(*segment, {.slots = slots});
  ASSERT_TRUE(point.ok());
  EXPECT_FALSE(device_->Reached(*point));
  EXPECT_TRUE(absl::IsDeadlineExceeded(device_->Wait(*point, 1'000'000)));
  driver_.query_event = kCuSuccess;
  EXPECT_TRUE(device_->Wait(*point, 1'000'000).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Wait({point->timeline, 99}, -1)));
}

TEST_F(CudaDeviceTest, CancelsWorkThatWasNotHandedOver) {
  const auto segment = Record(CopyStep());
  ASSERT_TRUE(segment.ok());
  const BufferRef slots[] = {Buffer(Memory::kDevice), Buffer(Memory::kDevice), nullptr};
  const std::atomic<bool> cancel = true;
  EXPECT_TRUE(absl::IsAborted(device_->Run(*segment, {.slots = slots, .cancel = &cancel})));
  EXPECT_TRUE(RunCopy().ok());
}

TEST_F(CudaDeviceTest, IsLostForGood) {
  const auto segment = Record(CopyStep());
  ASSERT_TRUE(segment.ok());
  {
    const BufferRef slots[] = {Buffer(Memory::kDevice), Buffer(Memory::kDevice), nullptr};
    driver_.query_event = 700;  // an illegal address
    const absl::Status s = device_->Run(*segment, {.slots = slots});
    EXPECT_TRUE(absl::IsAborted(s)) << s;
    EXPECT_THAT(s.message(), HasSubstr("CUDA_ERROR_OF_THE_TEST"));
  }
  driver_.query_event = kCuSuccess;
  EXPECT_TRUE(absl::IsAborted(device_->Health()));
  EXPECT_TRUE(absl::IsAborted(device_->Allocate(Memory::kDevice, 16).status()));
  EXPECT_TRUE(absl::IsAborted(device_->Submit(*segment, {}).status()));
}

TEST_F(CudaDeviceTest, NamesTheStepThatCouldNotBeLaunched) {
  const auto sum = Sum();
  if (!sum.ok()) GTEST_SKIP() << sum.status();
  const auto segment =
      Record({.program = *sum, .operands = {Whole(0), Whole(1), Whole(2, true)}, .label = "adds"});
  ASSERT_TRUE(segment.ok()) << segment.status();
  const BufferRef slots[] = {Buffer(Memory::kDevice), Buffer(Memory::kDevice),
                             Buffer(Memory::kDevice)};
  driver_.launch = 701;  // too many resources requested
  const absl::Status s = device_->Run(*segment, {.slots = slots});
  EXPECT_TRUE(absl::IsUnavailable(s)) << s;
  EXPECT_THAT(s.message(), HasSubstr("adds"));
  driver_.launch = kCuSuccess;
  EXPECT_TRUE(device_->Run(*segment, {.slots = slots}).ok());
}

TEST_F(CudaDeviceTest, LaunchesWithTheAddressesOfItsOperands) {
  const auto sum = Sum();
  if (!sum.ok()) GTEST_SKIP() << sum.status();
  Step step{.program = *sum, .operands = {Whole(0), Whole(1), Whole(2, true)}, .label = "adds"};
  step.operands[1].offset = 256;
  const auto segment = Record(step, /*timestamps=*/true);
  ASSERT_TRUE(segment.ok()) << segment.status();
  const BufferRef slots[] = {Buffer(Memory::kDevice), Buffer(Memory::kDevice),
                             Buffer(Memory::kDevice)};
  driver_.expected_arguments = 3;
  ASSERT_TRUE(device_->Run(*segment, {.slots = slots}).ok());
  ASSERT_EQ(driver_.launches.size(), 1u);
  const auto at = [&](int n) { return static_cast<const CudaBuffer&>(*slots[n]).address(); };
  EXPECT_THAT(driver_.launches[0].arguments, ElementsAre(at(0), at(1) + 256, at(2)));
  EXPECT_GE(driver_.launches[0].grid[0] * driver_.launches[0].block[0], 25u);  // vectors
  const auto times = device_->Timestamps(**segment);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->at(0).end, 2'500'000u);
}

TEST_F(CudaDeviceTest, LoadsPtxWhereTheDriverRefusesMachineCode) {
  driver_.load_cubin = kCuNoBinaryForGpu;
  const auto sum = Sum();
  if (!FetchedNvrtc().ok()) GTEST_SKIP() << sum.status();
  EXPECT_TRUE(sum.ok()) << sum.status();
  EXPECT_THAT(driver_.images, ElementsAre("cubin", "ptx"));
}

TEST_F(CudaDeviceTest, LoadsPtxOnEveryThread) {
  if (!FetchedNvrtc().ok()) GTEST_SKIP() << FetchedNvrtc().status();
  driver_.load_cubin = kCuNoBinaryForGpu;
  const ir::AnyOp add = ir::Add{};
  std::vector<ir::Types> types;
  for (int64_t n = 1; n <= 16; ++n) types.emplace_back(2, ir::Type::Tensor(DType::kF32, {n, 7}));
  std::vector<CompileRequest> requests;
  for (const ir::Types& t : types)
    requests.push_back({.op = &add, .in = t, .out = {t.data(), 1}, .name = "sum"});
  for (const auto& program : device_->Compile(requests, [](size_t) { return true; }))
    EXPECT_TRUE(program.ok()) << program.status();
}

TEST_F(CudaDeviceTest, SaysThatTheDriverIsOlderThanTheCompiler) {
  driver_.load_cubin = kCuNoBinaryForGpu;
  driver_.load_ptx = kCuUnsupportedPtxVersion;
  const auto sum = Sum();
  if (!FetchedNvrtc().ok()) GTEST_SKIP() << sum.status();
  EXPECT_TRUE(absl::IsUnavailable(sum.status()));
  EXPECT_THAT(sum.status().message(), HasSubstr("driver is older than NVRTC"));
}

TEST_F(CudaDeviceTest, ServesWithoutNvrtcWhatWasCompiledBefore) {
  if (!FetchedNvrtc().ok()) GTEST_SKIP() << FetchedNvrtc().status();
  const TempFolder cache;
  const auto nvrtc = FetchedNvrtc();  // which lies in the other cache
  const ScopedEnvironment here("XDG_CACHE_HOME", cache.path().string());
  EXPECT_FALSE(HasCompiledKernels(80));
  Open(Unavailable("no NVRTC"), true);
  EXPECT_THAT(Sum().status().message(), HasSubstr("not been compiled before"));
  Open(nvrtc, true);
  EXPECT_TRUE(Sum().ok());
  EXPECT_TRUE(HasCompiledKernels(80));
  Open(Unavailable("no NVRTC"), true);
  const auto sum = Sum();
  EXPECT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(device_->compile_counts().compiled, 0);
}

}  // namespace
}  // namespace forge::cuda
