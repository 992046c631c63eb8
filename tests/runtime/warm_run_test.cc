// SPDX-License-Identifier: Apache-2.0
// What a run costs once its shapes are bound.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "runtime/backends.h"
#include "runtime/session.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"

namespace {
thread_local int allocations = 0;
}  // namespace

// Of the whole program: those of the thread that looks are counted.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(size_t bytes) {
  if (void* memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace forge {
namespace {

class WarmRunTest : public ::testing::Test {
 protected:
  void Open(const std::string& device) {
    FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef opened, OpenDevice(device, {.threads = 1}));
    FORGE_ASSERT_OK_AND_ASSIGN(session_, Session::Create(testing::AddingModel(), opened));
  }
  absl::Status Run(int64_t rows) {
    const int64_t shape[] = {rows, 3};
    const auto bytes = static_cast<size_t>(rows) * 12;
    const TensorRef x{DType::kF32, shape, {reinterpret_cast<const uint8_t*>(x_), bytes}};
    const std::span<uint8_t> y(reinterpret_cast<uint8_t*>(y_), bytes);
    return session_->Run({&x, 1}, {&y, 1});
  }
  std::unique_ptr<Session> session_;
  alignas(16) float x_[6] = {1, -50, 3, 4, 5, -60};
  alignas(16) float y_[6] = {};
};

TEST_F(WarmRunTest, AllocatesNothing) {
  Open("cpu");
  for (const int64_t rows : {1, 2}) ASSERT_THAT(Run(rows), Succeeds());
  const int before = allocations;
  for (int i = 0; i < 10; ++i)
    for (const int64_t rows : {1, 2}) ASSERT_TRUE(Run(rows).ok());
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(std::vector<float>(y_, y_ + 6), (std::vector<float>{11, 0, 33, 14, 25, 0}));
}

TEST_F(WarmRunTest, EveryDeviceTakesCallersMemory) {
  for (const BackendDevices& backend : ListDevices())
    for (const DeviceInfo& device : backend.devices) {
      if (!device.usable) continue;
      SCOPED_TRACE(device.id);
      Open(device.id);
      for (const int64_t rows : {2, 1, 2}) {
        std::fill(std::begin(y_), std::end(y_), -1.0f);
        ASSERT_THAT(Run(rows), Succeeds());
        const std::vector<float> all = {11, 0, 33, 14, 25, 0};
        EXPECT_EQ(std::vector<float>(y_, y_ + rows * 3),
                  std::vector<float>(all.begin(), all.begin() + rows * 3));
        EXPECT_EQ(y_[3], rows == 1 ? -1 : 14) << "written beyond the end";
      }
    }
}

// Odd addresses are copied.
TEST_F(WarmRunTest, TakesMemoryOfAnyAlignment) {
  Open("cpu");
  const int64_t shape[] = {1, 3};
  const float numbers[] = {1, 2, 3};
  std::vector<uint8_t> in(13), out(13);
  std::memcpy(in.data() + 1, numbers, 12);
  const TensorRef x{DType::kF32, shape, {in.data() + 1, 12}};
  const std::span<uint8_t> y(out.data() + 1, 12);
  ASSERT_THAT(session_->Run({&x, 1}, {&y, 1}), Succeeds());
  float got[3];
  std::memcpy(got, y.data(), 12);
  EXPECT_EQ(std::vector<float>(got, got + 3), (std::vector<float>{11, 22, 33}));
}

TEST_F(WarmRunTest, RefusesOtherMemory) {
  Open("reference");
  EXPECT_THAT(session_->BoundOutputs(), Fails(kInvalid, "not bound"));
  ASSERT_THAT(Run(2), Succeeds());
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::Types bound, session_->BoundOutputs());
  EXPECT_EQ(bound[0].ToText(), "f32[2, 3]");
  const int64_t shape[] = {2, 3};
  const auto* bytes = reinterpret_cast<const uint8_t*>(x_);
  const TensorRef x{DType::kF32, shape, {bytes, 24}}, small{DType::kF32, shape, {bytes, 20}},
      other{DType::kI32, shape, {bytes, 24}};
  auto* to = reinterpret_cast<uint8_t*>(y_);
  const std::span<uint8_t> y(to, 24), less(to, 20), own(reinterpret_cast<uint8_t*>(x_) + 8, 24);
  EXPECT_THAT(session_->Run({&small, 1}, {&y, 1}), Fails(kInvalid, "24 bytes"));
  EXPECT_THAT(session_->Run({&other, 1}, {&y, 1}), Fails(kInvalid, "i32[2, 3]"));
  EXPECT_THAT(session_->Run({&x, 1}, {&less, 1}), Fails(kInvalid, "has 20 bytes"));
  EXPECT_THAT(session_->Run({&x, 1}, {&own, 1}), Fails(kInvalid, "overlaps that of input 0"));
  EXPECT_THAT(session_->Run({&x, 1}, std::span<const std::span<uint8_t>>()),
              Fails(kInvalid, "1 outputs, but memory is given for 0"));
  EXPECT_THAT(session_->Run(std::span<const TensorRef>(), {&y, 1}), Fails(kInvalid, "takes 1"));
}

}  // namespace
}  // namespace forge
