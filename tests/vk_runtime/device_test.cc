// SPDX-License-Identifier: Apache-2.0
// Listing, opening, environment, memory and copies.
#include "codegen/schedules/emission.h"
#include "tests/support/gate.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class DeviceTest : public VulkanTest {};
class MemoryTest : public VulkanRunTest {};

TEST(DriverTest, TellsInOneSentenceWhyThereIsNoDevice) {
  const ScopedEnvironment files("VK_DRIVER_FILES", "/nowhere.json");
  const ScopedEnvironment icds("VK_ICD_FILENAMES", "/nowhere.json");
  VulkanDriver driver;
  const auto all = driver.List();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].usable);
  EXPECT_FALSE(all[0].usable.text().empty());
  EXPECT_TRUE(absl::IsUnavailable(driver.Open(0, {}).status()));
}

TEST(DriverTest, RefusesSettingsItDoesNotKnow) {
  for (const auto& [name, value] :
       std::multimap<std::string, std::string>{{"FORGE_VK_DISABLE", "fp16,warp_speed"},
                                               {"FORGE_VK_LIMITS", "tiny"},
                                               {"FORGE_VK_LIMITS", "cache_bytes=big"},
                                               {"FORGE_VK_LIMITS", "flops_per_byte=-1"},
                                               {"FORGE_VK_LIMITS", "cache_bytes=1125899906842625"},
                                               {"FORGE_VK_VALIDATE", "maybe"},
                                               {"FORGE_VK_HOST_MEMORY", "yes"},
                                               {"FORGE_VK_PIECE_MS", "-3"}}) {
    const ScopedEnvironment set(name.c_str(), value);
    VulkanDriver driver;
    EXPECT_NE(driver.List().at(0).usable.text().find(name), std::string::npos);
    EXPECT_TRUE(absl::IsInvalidArgument(driver.Open(0, {}).status())) << name;
  }
}

TEST(DriverTest, TakesAnEmptySettingForNone) {
  for (const char* name :
       {"FORGE_VK_DISABLE", "FORGE_VK_LIMITS", "FORGE_VK_VALIDATE", "FORGE_VK_PIECE_MS"}) {
    const ScopedEnvironment set(name, "");
    const absl::StatusOr<Settings> settings = Settings::FromEnvironment();
    ASSERT_OK(settings.status());
    EXPECT_EQ(settings->piece_nanoseconds, Settings().piece_nanoseconds);
  }
}

TEST_F(DeviceTest, DescribesItself) {
  const DeviceInfo& info = device_->info();
  EXPECT_EQ(info.id.rfind("vulkan:", 0), 0u);
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_FALSE(info.features.empty());
  EXPECT_FALSE(info.limits.empty());
  EXPECT_GE(device_->largest_buffer(), 1u << 30);
}

// What the host divides by, before any driver's word is tried.
TEST_F(DeviceTest, RefusesAlignmentsThatAreNoPowersOfTwo) {
  Queries q = device_->context()->queries();
  EXPECT_TRUE(Usable(q));
  for (VkDeviceSize VkPhysicalDeviceLimits::* limit :
       {&VkPhysicalDeviceLimits::minStorageBufferOffsetAlignment,
        &VkPhysicalDeviceLimits::nonCoherentAtomSize})
    for (const VkDeviceSize bytes : {0, 12}) {
      Queries odd = q;
      odd.properties.limits.*limit = bytes;
      EXPECT_NE(Usable(odd).text().find("no power of two"), std::string::npos) << bytes;
    }
}

TEST_F(DeviceTest, RefusesADeviceThatIsNotThere) {
  EXPECT_TRUE(absl::IsUnavailable(driver_->Open(99, {}).status()));
}

TEST_F(DeviceTest, HidesFeatures) {
  const ScopedEnvironment hide("FORGE_VK_DISABLE", "fp16,subgroup");
  Open();
  const codegen::Caps& caps = device_->context()->caps();
  EXPECT_FALSE(caps.f16 || caps.subgroup_arithmetic || caps.subgroup_shuffle);
  EXPECT_EQ(caps.subgroup_size, 1);
  for (const Feature& f : device_->info().features) EXPECT_TRUE(f.name != "fp16" || !f.present);
}

// The size that a device reports is not promised to a kernel that may not require it.
TEST_F(DeviceTest, ReliesOnNoSubgroupSizeThatItCannotRequire) {
  const ScopedEnvironment hide("FORGE_VK_DISABLE", "subgroup_size_control");
  Open();
  const codegen::Caps& caps = device_->context()->caps();
  EXPECT_EQ(caps.narrow_subgroup_size(), 1);
  EXPECT_TRUE(caps.matrices.empty());
  EXPECT_FALSE(codegen::ShufflesAreQuick(caps));
}

// Schedules divide by these sizes.
TEST(FeaturesTest, BelievesNoSubgroupSizeThatCannotBe) {
  const auto with = [](uint32_t size, uint32_t least, uint32_t most, uint32_t subgroups = 32) {
    Queries q;
    q.properties.limits.maxComputeWorkGroupInvocations = 1024;
    q.subgroup = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                  .pNext = nullptr,
                  .subgroupSize = size,
                  .supportedStages = VK_SHADER_STAGE_COMPUTE_BIT,
                  .supportedOperations = VK_SUBGROUP_FEATURE_ARITHMETIC_BIT,
                  .quadOperationsInAllStages = VK_FALSE};
    q.features.subgroup_size.subgroupSizeControl = VK_TRUE;
    q.features.subgroup_size.computeFullSubgroups = VK_TRUE;
    q.subgroup_size.minSubgroupSize = least;
    q.subgroup_size.maxSubgroupSize = most;
    q.subgroup_size.maxComputeWorkgroupSubgroups = subgroups;
    q.subgroup_size.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
    return Grant(q, {}, {}).caps;
  };
  const codegen::Caps sound = with(32, 8, 64);
  EXPECT_TRUE(sound.subgroup_arithmetic);
  EXPECT_EQ(sound.narrow_subgroup_size(), 16);
  for (const uint32_t size : {0U, 24U, 256U}) {
    EXPECT_FALSE(with(size, 8, 64).subgroup_arithmetic) << size;
    EXPECT_EQ(with(32, size, size).narrow_subgroup_size(), 1) << size;
  }
  EXPECT_EQ(with(32, 64, 8).narrow_subgroup_size(), 1);
  // A workgroup has so many of the smallest at most, and the guaranteed size at least.
  EXPECT_EQ(sound.max_workgroup_invocations, 256);
  EXPECT_EQ(with(32, 8, 64, 128).max_workgroup_invocations, 1024);
  EXPECT_EQ(with(32, 8, 64, 15).narrow_subgroup_size(), 1);
}

TEST(FeaturesTest, CountsWorkgroupsAlongEachAxis) {
  Queries q;
  std::copy_n(std::array<uint32_t, 3>{UINT32_MAX, 70'000, 65'535}.begin(), 3,
              q.properties.limits.maxComputeWorkGroupCount);
  EXPECT_EQ(Grant(q, {}, {}).caps.max_grid(), (std::array<int64_t, 3>{INT32_MAX, 70'000, 65'535}));
}

TEST_F(DeviceTest, BecomesThePoorestDevice) {
  const ScopedEnvironment hide("FORGE_VK_DISABLE", "all,host_cores");
  const ScopedEnvironment limit("FORGE_VK_LIMITS", "guaranteed");
  Open();
  const codegen::Caps& caps = device_->context()->caps();
  EXPECT_EQ(caps.max_workgroup_invocations, 128);
  EXPECT_EQ(caps.max_operands, 4);
  EXPECT_EQ(caps.max_operand_bytes, 128 << 20);
  for (const Feature& f : device_->info().features) EXPECT_FALSE(f.present) << f.name;
}

// A developer makes the kernels of another device so.
TEST_F(DeviceTest, TakesAnotherDevicesMeasures) {
  const ScopedEnvironment limit("FORGE_VK_LIMITS", "cache_bytes=33554432,flops_per_byte=16");
  Open();
  const codegen::Caps& caps = device_->context()->caps();
  EXPECT_EQ(caps.cache_bytes, 32 << 20);
  EXPECT_EQ(caps.flops_per_byte, 16);
  const std::pair<std::string, std::string> shown("cache_bytes", "33554432");
  EXPECT_EQ(std::count(device_->info().limits.begin(), device_->info().limits.end(), shown), 1);
}

TEST(DriverTest, GivesKernelsWhatWasMeasured) {
  const Rates rates{.flops = 7e9, .bytes = 1e9, .cache_bytes = 2 << 20};
  Granted granted;
  granted.Take(std::nullopt, {});
  EXPECT_EQ(granted.caps.cache_bytes, 0);
  granted.Take(rates, {});
  EXPECT_EQ(granted.caps.cache_bytes, 2 << 20);
  EXPECT_EQ(granted.caps.flops_per_byte, 8);
  Granted poorest;
  poorest.Take(rates, {.guaranteed = true});
  EXPECT_EQ(poorest.caps.cache_bytes, 0);
  EXPECT_EQ(poorest.caps.flops_per_byte, 0);
}

TEST(DriverTest, RefusesRangesThatHoldNothing) {
  for (const char* limit : {"max_operand_bytes", "max_allocation_bytes"})
    for (const char* range : {"", "255", "-1", "much"}) {
      const ScopedEnvironment set("FORGE_VK_LIMITS", fmt::format("{}={}", limit, range));
      VulkanDriver driver;
      EXPECT_TRUE(absl::IsInvalidArgument(driver.Open(0, {}).status())) << limit << range;
    }
}

TEST_F(DeviceTest, TakesASmallerRangeOfStorageBuffers) {
  const ScopedEnvironment limit("FORGE_VK_LIMITS", "guaranteed,max_operand_bytes=4096");
  Open();
  EXPECT_EQ(device_->context()->caps().max_operand_bytes, 4096);
  EXPECT_EQ(device_->context()->caps().max_operands, 4);
}

// "all" hides what devices may lack, not what a software device is.
TEST_F(DeviceTest, TakesKernelsOfGpusOnlyWhereAsked) {
  const bool software = device_->info().is_cpu;
  device_.reset();
  for (const auto& [word, hides] : {std::pair("all", false), {"host_cores", true}}) {
    const ScopedEnvironment hide("FORGE_VK_DISABLE", word);
    Open();
    EXPECT_EQ(device_->context()->caps().runs_on_cpu, software && !hides) << word;
    device_.reset();
  }
}

TEST_F(DeviceTest, AllocatesManyAndGivesThemBack) {
  for (int round = 0; round < 3; ++round) {
    std::vector<BufferRef> all;
    for (int i = 0; i < 200; ++i) {
      auto b = device_->Allocate(i % 3 == 0 ? Memory::kUpload : Memory::kDevice, 1000 + i * 977);
      ASSERT_OK(b.status());
      EXPECT_EQ((*b)->size(), 1000u + i * 977);
      all.push_back(*b);
      if (i % 5 == 0) all.erase(all.begin() + static_cast<long>(all.size() / 2));
    }
  }
}

TEST_F(DeviceTest, SaysHowMuchWasAskedForAndIsLeft) {
  auto b = device_->Allocate(Memory::kDevice, uint64_t{1} << 60);
  ASSERT_TRUE(absl::IsResourceExhausted(b.status()));
  EXPECT_NE(Message(b.status()).find("1152921504606846976"), std::string_view::npos);
}

TEST_F(DeviceTest, MapsOnlyWhatTheHostTouches) {
  auto b = device_->Allocate(Memory::kDevice, 64);
  ASSERT_OK(b.status());
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Map(**b).status()));
}

TEST_F(DeviceTest, APointWithoutTimelineIsReached) {
  EXPECT_TRUE(device_->Reached({}));
  ASSERT_OK(device_->Wait({}, 0));
}

TEST_F(MemoryTest, RefusesToWaitForWhatWasNeverSubmitted) {
  const BufferRef a = Upload(Iota(4)), b = Upload(Iota(4));
  auto point = device_->Copy({a, 0, b, 0, 16}, {});
  ASSERT_OK(point.status());
  const Point never{point->timeline, 1000};
  EXPECT_FALSE(device_->Reached(never));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Wait(never, 0)));
  EXPECT_TRUE(
      absl::IsInvalidArgument(device_->Copy({a, 0, b, 0, 16}, std::span(&never, 1)).status()));
}

TEST_F(MemoryTest, WaitsForAnotherTimeline) {
  const auto gate = std::make_shared<testing::Gate>();
  const Point go{gate, 3};
  const BufferRef a = Upload(Iota(1000)), b = Upload(std::vector<uint32_t>(1000)),
                  c = Upload(Iota(1000, 5));
  auto first = device_->Copy({a, 0, b, 0, 4000}, std::span(&go, 1));
  ASSERT_OK(first.status());
  auto second = device_->Copy({b, 0, c, 0, 4000}, {});  // in order behind the first
  ASSERT_OK(second.status());
  EXPECT_TRUE(absl::IsDeadlineExceeded(device_->Wait(*second, 50'000'000)));
  EXPECT_FALSE(device_->Reached(*first));
  gate->Open(3);
  ASSERT_OK(device_->Wait(*second, -1));
  EXPECT_TRUE(device_->Reached(*first));
  EXPECT_EQ(Download<uint32_t>(c), Iota(1000));
}

TEST_F(MemoryTest, FailsWithWhatItWaitedFor) {
  const auto gate = std::make_shared<testing::Gate>();
  const Point go{gate, 1};
  const BufferRef a = Upload(Iota(4)), b = Upload(Iota(4, 9));
  auto point = device_->Copy({a, 0, b, 0, 16}, std::span(&go, 1));
  ASSERT_OK(point.status());
  gate->Open(1, Internal("the producer failed"));
  EXPECT_EQ(device_->Wait(*point, -1).code(), absl::StatusCode::kInternal);
  ASSERT_OK(device_->Health());
  EXPECT_EQ(Download<uint32_t>(b), Iota(4, 9));
}

TEST_F(MemoryTest, APointOutlivesItsDevice) {
  const auto gate = std::make_shared<testing::Gate>();
  const Point never{gate, 1};
  auto point = device_->Copy({Upload(Iota(4)), 0, Upload(Iota(4)), 0, 16}, std::span(&never, 1));
  ASSERT_OK(point.status());
  device_.reset();
  EXPECT_TRUE(point->timeline->Reached(point->value));
  EXPECT_TRUE(absl::IsAborted(point->timeline->Wait(point->value, -1)));
}

TEST_F(MemoryTest, TellsTheTimelinesOfTwoDevicesApart) {
  const std::shared_ptr<VulkanDevice> first = device_;
  const BufferRef a = Upload(Iota(4));
  auto point = first->Copy({a, 0, a, 8, 8}, {});
  ASSERT_OK(point.status());
  Open();
  const BufferRef b = Upload(Iota(8)), c = Upload(Iota(8, 3));
  auto later = device_->Copy({b, 0, c, 0, 32}, std::span(&*point, 1));
  ASSERT_OK(later.status());
  EXPECT_NE(later->timeline, point->timeline);
  ASSERT_OK(device_->Wait(*later, -1));
  EXPECT_TRUE(device_->Reached(*point));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Copy({a, 0, c, 0, 16}, {}).status()));
}

TEST_F(MemoryTest, CopiesAtOddOffsets) {
  std::vector<uint8_t> x(5000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * 7 + i / 256);
  const BufferRef from = Upload(x);
  for (const auto& [at, to_at, bytes] : std::vector<std::array<uint64_t, 3>>{
           {0, 0, 5000}, {1, 0, 4999}, {3, 1, 7}, {4999, 4999, 1}, {17, 33, 4093}, {5, 5, 0}}) {
    const BufferRef to = Upload(std::vector<uint8_t>(5000, 0xee));
    auto point = device_->Copy({from, at, to, to_at, bytes}, {});
    ASSERT_OK(point.status());
    ASSERT_OK(device_->Wait(*point, -1));
    std::vector<uint8_t> expected(5000, 0xee);
    std::copy_n(x.begin() + static_cast<long>(at), bytes,
                expected.begin() + static_cast<long>(to_at));
    EXPECT_EQ(Download<uint8_t>(to), expected) << at << " " << to_at << " " << bytes;
  }
}

TEST_F(MemoryTest, RefusesCopiesOutsideOrOntoThemselves) {
  const BufferRef a = Upload(Iota(16)), b = Upload(Iota(8));
  EXPECT_TRUE(absl::IsOutOfRange(device_->Copy({a, 0, b, 0, 64}, {}).status()));
  EXPECT_TRUE(absl::IsOutOfRange(device_->Copy({a, UINT64_MAX, b, 0, 4}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Copy({a, 0, a, 8, 16}, {}).status()));
}

TEST_F(MemoryTest, ImportsHostMemoryOrSaysWhyNot) {
  auto pages =
      std::shared_ptr<uint8_t>(static_cast<uint8_t*>(std::aligned_alloc(4096, 8192)), free);
  for (int i = 0; i < 8192; ++i) pages.get()[i] = static_cast<uint8_t>(i * 13);
  const Bytes bytes(std::span<const uint8_t>(pages.get() + 256, 5000), pages);
  auto b = device_->Import(bytes);
  if (absl::IsUnimplemented(b.status())) GTEST_SKIP() << Message(b.status());
  ASSERT_OK(b.status());
  const auto seen = Download<uint8_t>(*b);
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), bytes.data()));
}

TEST_F(MemoryTest, FlushesMemoryThatIsNotCoherent) {
  const ScopedEnvironment hide("FORGE_VK_DISABLE", "host_coherent");
  Open();
  const auto x = Iota(3001);
  EXPECT_EQ(Download<uint32_t>(Upload(x)), x);
}

TEST_F(MemoryTest, KeepsBuffersAliveWhileTheyAreUsed) {
  auto to = device_->Allocate(Memory::kReadback, 1 << 20);
  ASSERT_OK(to.status());
  Point point;
  {
    const BufferRef from = Upload(Iota(1 << 18));
    auto p = device_->Copy({from, 0, *to, 0, 1 << 20}, {});
    ASSERT_OK(p.status());
    point = *p;
  }
  ASSERT_OK(device_->Wait(point, -1));
  auto mapped = device_->Map(**to);
  ASSERT_OK(mapped.status());
  EXPECT_EQ(reinterpret_cast<const uint32_t*>(mapped->data())[70000], 70000u);
}

TEST_F(MemoryTest, TurnsValidationMessagesIntoErrors) {
  const ScopedEnvironment on("FORGE_VK_VALIDATE", "1");
  VulkanDriver probe;
  if (const Verdict v = probe.List().at(0).usable; !v) GTEST_SKIP() << v.text();
  Open();
  EXPECT_EQ(Download<uint32_t>(Upload(Iota(77))), Iota(77));
  ASSERT_OK(device_->Health());
  // A buffer of no bytes is forbidden.
  const Context& context = *device_->context();
  auto info = Typed<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
  VkBuffer handle = VK_NULL_HANDLE;
  if (context.fn.vkCreateBuffer(context.device, &info, nullptr, &handle) == VK_SUCCESS)
    context.fn.vkDestroyBuffer(context.device, handle, nullptr);
  EXPECT_NE(Message(device_->Health()).find("validation"), std::string_view::npos);
  EXPECT_FALSE(device_->Wait({}, 0).ok());
}

TEST_F(MemoryTest, OutlivesItsDevice) {
  const BufferRef b = Upload(Iota(100));
  device_.reset();
  driver_.reset();
  EXPECT_EQ(b->size(), 400u);
}

}  // namespace
}  // namespace forge::vk
