// SPDX-License-Identifier: Apache-2.0
// What the tests of the Vulkan device share: the device, buffers filled and read, programs.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <list>
#include <numeric>

#include "ir/type/host_value.h"
#include "tests/support/scoped_environment.h"
#include "vk_runtime/driver.h"
#include "vk_runtime/pipelines/fixed_launch.h"

namespace forge::vk {

// Several of them.
class ScopedEnvironments {
 public:
  explicit ScopedEnvironments(std::vector<std::pair<std::string, std::string>> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) set_.emplace_back(name.c_str(), value);
  }

 private:
  std::vector<std::pair<std::string, std::string>> variables_;
  std::list<ScopedEnvironment> set_;
};

#define ASSERT_OK(expression)                                                \
  do {                                                                       \
    const absl::Status forge_ok_ = (expression);                             \
    ASSERT_TRUE(forge_ok_.ok()) << std::string(::forge::Message(forge_ok_)); \
  } while (false)

// The first usable device, opened as the environment says when Open() is called.
class VulkanTest : public ::testing::Test {
 protected:
  void Open(DeviceOptions options = {.threads = 2, .cache = false});
  void SetUp() override { Open(); }

  // Opens the same device with what `change` makes of the features that it is granted.
  void OpenGranted(absl::FunctionRef<void(Granted&)> change, const Settings& settings = {});

  // A device that only compiles runs nothing, or maps nothing; see tests/lab.
  bool Executes();

  template <class T>
  BufferRef Upload(const std::vector<T>& values) {
    const uint64_t bytes = values.size() * sizeof(T);
    auto staging = device_->Allocate(Memory::kUpload, bytes);
    auto buffer = device_->Allocate(Memory::kDevice, bytes);
    EXPECT_TRUE(staging.ok() && buffer.ok());
    auto mapped = device_->Map(**staging);
    EXPECT_TRUE(mapped.ok()) << Message(mapped.status());
    std::memcpy(mapped->data(), values.data(), bytes);
    auto point = device_->Copy({*staging, 0, *buffer, 0, bytes}, {});
    EXPECT_TRUE(point.ok()) << Message(point.status());
    EXPECT_TRUE(device_->Wait(*point, -1).ok());
    return *buffer;
  }
  template <class T>
  std::vector<T> Download(const BufferRef& buffer) {
    std::vector<T> values(buffer->size() / sizeof(T));
    auto staging = device_->Allocate(Memory::kReadback, buffer->size());
    EXPECT_TRUE(staging.ok());
    auto point = device_->Copy({buffer, 0, *staging, 0, buffer->size()}, {});
    EXPECT_TRUE(point.ok()) << Message(point.status());
    EXPECT_TRUE(device_->Wait(*point, -1).ok());
    auto mapped = device_->Map(**staging);
    EXPECT_TRUE(mapped.ok()) << Message(mapped.status());
    std::memcpy(values.data(), mapped->data(), values.size() * sizeof(T));
    return values;
  }

  // y[b, c, r] = x[b, r, c] of 32-bit elements: operand 0 to operand 1.
  ProgramRef Transpose(int64_t batch, int64_t rows, int64_t cols);
  static Operand Use(uint32_t slot, uint64_t offset, uint64_t bytes, bool writes = false) {
    return {.slot = slot,
            .offset = static_cast<int64_t>(offset),
            .bytes = static_cast<int64_t>(bytes),
            .writes = writes};
  }
  static Step MakeStep(ProgramRef program, std::vector<Operand> operands, std::string label) {
    return {std::move(program), std::move(operands), {}, std::move(label)};
  }
  // `slots` and the spans must live until Submit returns.
  static SubmitArgs Args(std::span<const BufferRef> slots, std::span<const int64_t> values = {},
                         std::span<const Point> wait = {}) {
    return {slots, values, wait, nullptr};
  }
  static std::vector<uint32_t> Iota(size_t n, uint32_t first = 0) {
    std::vector<uint32_t> v(n);
    std::iota(v.begin(), v.end(), first);
    return v;
  }

  std::unique_ptr<VulkanDriver> driver_;
  std::shared_ptr<VulkanDevice> device_;
};

// The same, where kernels and copies really run.
class VulkanRunTest : public VulkanTest {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (!IsSkipped() && !Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  }

  // Does an op of one result, compiled by one of Device::Choices, agree with its evaluator?
  absl::Status CheckBy(const std::string& choice, const ir::AnyOp& op,
                       std::span<const ir::HostValue* const> operands);
  void ExpectRightBy(const std::string& choice, const ir::AnyOp& op,
                     std::span<const ir::HostValue* const> operands);
};

// Runs the kernels that GPUs get: software devices have them only where they are asked for.
class GpuKernelTest : public VulkanRunTest {
 protected:
  void SetUp() override {
    const ScopedEnvironment hide("FORGE_VK_DISABLE", "host_cores");
    VulkanRunTest::SetUp();
  }
};

inline std::vector<uint32_t> Transposed(const std::vector<uint32_t>& x, size_t batch, size_t rows,
                                        size_t cols) {
  std::vector<uint32_t> y(x.size());
  for (size_t b = 0; b < batch; ++b)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < cols; ++c) y[(b * cols + c) * rows + r] = x[(b * rows + r) * cols + c];
  return y;
}

}  // namespace forge::vk
