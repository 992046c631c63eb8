// SPDX-License-Identifier: Apache-2.0
#include "tests/vk_runtime/vulkan_test.h"

#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "runtime/plan/op_runner.h"
#include "tests/support/temp_folder.h"

// The layer's own leaks (version 1.3.239) are none of ours. Called by LeakSanitizer.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libVkLayer_khronos_validation.so\n";
}

namespace forge::vk {
namespace {

// Keeps the libraries of drivers and layers loaded: their globals hold memory for good, which would
// look leaked once they are gone.
class LibrariesStayLoaded final : public ::testing::Environment {
  void SetUp() override {
    static auto* const driver = new VulkanDriver;
    (void)driver->List();
    const ScopedEnvironment validate("FORGE_VK_VALIDATE", "1");
    static auto* const with_layers = new VulkanDriver;
    (void)with_layers->List();
  }
};

// Lets every test find the verdict of one self-test, in a cache folder of this program alone.
class VerdictIsKept final : public ::testing::Environment {
  void SetUp() override {
    setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    VulkanDriver driver;
    for (size_t i = 0; i < driver.List().size(); ++i) (void)driver.Open(i, {.threads = 1});
  }
  TempFolder cache_;
};

[[maybe_unused]] const ::testing::Environment* const kEnvironments[] = {
    ::testing::AddGlobalTestEnvironment(new LibrariesStayLoaded),
    ::testing::AddGlobalTestEnvironment(new VerdictIsKept),
};

}  // namespace

void VulkanTest::Open(DeviceOptions options) {
  device_.reset();
  driver_ = std::make_unique<VulkanDriver>();
  const std::vector<DeviceInfo> all = driver_->List();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].usable) continue;
    absl::StatusOr<DeviceRef> device = driver_->Open(i, options);
    ASSERT_OK(device.status());
    device_ = std::static_pointer_cast<VulkanDevice>(*device);
    return;
  }
  GTEST_SKIP() << all.at(0).usable.text();
}

void VulkanTest::OpenGranted(absl::FunctionRef<void(Granted&)> change, const Settings& settings) {
  const auto instance = Instance::Create(false);
  ASSERT_OK(instance.status());
  const auto devices = (*instance)->Devices();
  ASSERT_OK(devices.status());
  const Queries queries = Query(**instance, devices->at(0));
  Granted granted = Grant(queries, settings, {});
  change(granted);
  const auto context = Context::Create(*instance, queries, granted, settings);
  ASSERT_OK(context.status());
  const auto device = VulkanDevice::Open(*context, {}, {.threads = 2, .cache = false});
  ASSERT_OK(device.status());
  device_ = *device;
}

bool VulkanTest::Executes() {
  auto from = device_->Allocate(Memory::kUpload, 4);
  auto to = device_->Allocate(Memory::kReadback, 4);
  if (!from.ok() || !to.ok()) return false;
  auto in = device_->Map(**from), out = device_->Map(**to);
  if (!in.ok() || !out.ok()) return false;
  std::memset(in->data(), 0x5a, 4);
  std::memset(out->data(), 0, 4);
  auto point = device_->Copy({*from, 0, *to, 0, 4}, {});
  return point.ok() && device_->Wait(*point, -1).ok() && (*out)[3] == 0x5a;
}

ProgramRef VulkanTest::Transpose(int64_t batch, int64_t rows, int64_t cols) {
  auto shader = TransposeShader(batch, rows, cols, device_->context()->caps());
  EXPECT_TRUE(shader.has_value());
  auto program = MakeProgram(*shader, device_->pipelines());
  EXPECT_TRUE(program.ok()) << Message(program.status());
  return *program;
}

absl::Status VulkanRunTest::CheckBy(const std::string& choice, const ir::AnyOp& op,
                                    std::span<const ir::HostValue* const> operands) {
  FORGE_ASSIGN_OR_RETURN(const auto want, ir::Evaluate(op, operands));
  ir::Types in;
  for (const ir::HostValue* v : operands) in.push_back(v->type());
  FORGE_ASSIGN_OR_RETURN(const auto runner,
                         OpRunner::Create(device_, op, in, {.compile = {.choice = choice}}));
  FORGE_ASSIGN_OR_RETURN(const auto got, runner->Run(operands));
  return ir::CompareResult(op, operands, want.front(), got.front(), 0);
}

void VulkanRunTest::ExpectRightBy(const std::string& choice, const ir::AnyOp& op,
                                  std::span<const ir::HostValue* const> operands) {
  SCOPED_TRACE(choice);
  ASSERT_OK(CheckBy(choice, op, operands));
}

}  // namespace forge::vk
