// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/memory/heap.h"

#include <random>

#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

TEST(FreeListTest, FillsAndEmpties) {
  FreeList list(1024);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.Take(1024, 1), 0u);
  EXPECT_EQ(list.Take(1, 1), std::nullopt);
  list.Give(0, 1024);
  EXPECT_TRUE(list.empty());
}

TEST(FreeListTest, KeepsAlignmentAndNeverOverlaps) {
  std::mt19937 random(1);
  FreeList list(1 << 16);
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  for (int i = 0; i < 4000; ++i) {
    if (!taken.empty() && random() % 2 == 0) {
      std::swap(taken[random() % taken.size()], taken.back());
      list.Give(taken.back().first, taken.back().second);
      taken.pop_back();
      continue;
    }
    const uint64_t size = random() % 900 + 1, alignment = uint64_t{1} << random() % 9;
    const auto at = list.Take(size, alignment);
    if (!at) continue;
    EXPECT_EQ(*at % alignment, 0u);
    EXPECT_LE(*at + size, 1u << 16);
    for (const auto& [begin, bytes] : taken)
      EXPECT_TRUE(*at + size <= begin || begin + bytes <= *at);
    taken.emplace_back(*at, size);
  }
  for (const auto& [begin, bytes] : taken) list.Give(begin, bytes);
  EXPECT_TRUE(list.empty());
}

// A card: its own memory, a window of it that the host sees, and the host's memory.
VkPhysicalDeviceMemoryProperties Card() {
  VkPhysicalDeviceMemoryProperties m{};
  m.memoryHeapCount = m.memoryTypeCount = 3;
  m.memoryHeaps[0] = {8ull << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  m.memoryHeaps[1] = {256ull << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  m.memoryHeaps[2] = {16ull << 30, 0};
  constexpr VkMemoryPropertyFlags kMapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  m.memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  m.memoryTypes[1] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kMapped, 1};
  m.memoryTypes[2] = {kMapped, 2};
  return m;
}

TEST(MemoryTypesTest, AreTakenWhereMemoryIsLeft) {
  struct Case {
    HeapBytes left;  // MiB
    Memory kind;
    uint64_t bytes;  // MiB
    std::vector<uint32_t> order;
  };
  const Case cases[] = {
      {{8000, 256, 16000}, Memory::kDevice, 100, {0, 1, 2}},
      {{99, 256, 16000}, Memory::kDevice, 100, {1, 2, 0}},
      {{99, 99, 16000}, Memory::kDevice, 100, {2, 0, 1}},
      {{99, 0, 0}, Memory::kDevice, 100, {0, 1, 2}},
      {{100, 0, 0}, Memory::kDevice, 100, {0, 1, 2}},
      {{8000, 256, 16000}, Memory::kUpload, 100, {2, 1}},
      {{8000, 256, 50}, Memory::kUpload, 100, {1, 2}},
  };
  const VkPhysicalDeviceMemoryProperties card = Card();
  for (const Case& c : cases) {
    HeapBytes left = c.left;
    for (uint64_t& bytes : left) bytes <<= 20;
    EXPECT_EQ(ByRoom(card, TypesFor(card, c.kind, 7), c.bytes << 20, left), c.order);
  }
}

// A device whose driver says that it has the memory of a card, and is asked for it.
class BudgetTest : public VulkanTest {
 protected:
  static inline HeapBytes budgets, usage;
  static inline int asked;
  static inline std::vector<uint32_t> allocated;  // types
  static inline std::set<uint32_t> full_types;    // are full
  static inline PFN_vkAllocateMemory allocate;

  void SetUp() override {
    VulkanTest::SetUp();
    if (IsSkipped()) return;
    const auto instance = Instance::Create(false);
    ASSERT_OK(instance.status());
    const auto devices = (*instance)->Devices();
    ASSERT_OK(devices.status());
    queries_ = Query(**instance, devices->at(0));
    Granted granted = Grant(queries_, {}, {});
    granted.abilities.memory_budget = true;
    queries_.memory = Card();
    make_ = [instance = *instance, granted](const Queries& queries, const Settings& settings) {
      auto context = Context::Create(instance, queries, granted, settings);
      EXPECT_TRUE(context.ok()) << Message(context.status());
      allocate = std::exchange((*context)->fn.vkAllocateMemory, Allocate);
      return std::make_shared<Heap>(*context);
    };
    vkGetPhysicalDeviceMemoryProperties2 = Tell;
    budgets = {8ull << 30, 256ull << 20, 16ull << 30};
    usage = {};
    asked = 0;
    allocated.clear();
    full_types.clear();
    heap_ = make_(queries_, {});
  }
  void TearDown() override {
    heap_.reset();
    vkGetPhysicalDeviceMemoryProperties2 = properties_;
  }

  static VKAPI_ATTR void VKAPI_CALL Tell(VkPhysicalDevice,
                                         VkPhysicalDeviceMemoryProperties2* properties) {
    auto* b = static_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(properties->pNext);
    std::copy(budgets.begin(), budgets.end(), b->heapBudget);
    std::copy(usage.begin(), usage.end(), b->heapUsage);
    ++asked;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL Allocate(VkDevice device, const VkMemoryAllocateInfo* info,
                                                 const VkAllocationCallbacks* callbacks,
                                                 VkDeviceMemory* memory) {
    if (full_types.contains(info->memoryTypeIndex)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    allocated.push_back(info->memoryTypeIndex);
    VkMemoryAllocateInfo real = *info;
    real.memoryTypeIndex = 0;
    real.allocationSize = 4096;
    return allocate(device, &real, callbacks, memory);
  }
  Heap::PartRef Take(uint64_t bytes) {
    auto part = Heap::Allocate(heap_, Memory::kDevice, {bytes, 256, 7});
    EXPECT_TRUE(part.ok()) << Message(part.status());
    return part.ok() ? *part : nullptr;
  }

  Queries queries_;
  std::function<HeapRef(const Queries& queries, const Settings& settings)> make_;
  HeapRef heap_;
  const PFN_vkGetPhysicalDeviceMemoryProperties2 properties_ = vkGetPhysicalDeviceMemoryProperties2;
};

TEST_F(BudgetTest, IsAskedForEachBlock) {
  constexpr uint64_t kLarge = 100ull << 20;
  queries_.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  heap_ = make_(queries_, {});
  const auto first = Take(1000), second = Take(1000);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(allocated, (std::vector<uint32_t>{0}));
  usage[0] = budgets[0];  // by another program
  const auto third = Take(kLarge), fourth = Take(1000);
  usage[1] = budgets[1];
  const auto fifth = Take(kLarge);
  usage[2] = budgets[2];
  const auto sixth = Take(kLarge);
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(allocated, (std::vector<uint32_t>{0, 1, 2, 0}));
}

TEST_F(BudgetTest, TakesTheHostsMemoryForACardOnlyWhenTold) {
  // The card's own memory is full, and its driver says so.
  full_types = {0, 1};
  queries_.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  heap_ = make_(queries_, {});
  const absl::Status full = Heap::Allocate(heap_, Memory::kDevice, {1 << 20, 256, 7}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_NE(Message(full).find("FORGE_VK_HOST_MEMORY=1"), std::string_view::npos) << full;
  EXPECT_EQ(allocated, std::vector<uint32_t>());
  heap_ = make_(queries_, {.host_memory = true});
  EXPECT_NE(Take(1 << 20), nullptr);
  EXPECT_EQ(allocated, std::vector<uint32_t>{2});
  // An integrated GPU reads the host's memory as its own.
  queries_.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  heap_ = make_(queries_, {});
  EXPECT_NE(Take(1 << 20), nullptr);
  EXPECT_EQ(allocated, (std::vector<uint32_t>{2, 2}));
}

}  // namespace
}  // namespace forge::vk
