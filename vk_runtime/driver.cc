// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/driver.h"

#include "vk_runtime/self_test/measure_rates.h"

namespace forge::vk {
namespace {

constexpr int64_t kSelfTestPatience = 30'000'000'000;  // nanoseconds for each feature

std::string Version(uint32_t v) {
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(v), VK_API_VERSION_MINOR(v),
                     VK_API_VERSION_PATCH(v));
}

std::string DriverText(const Queries& q) {
  if (q.driver.driverName[0] == '\0')
    return fmt::format("vendor {:#x}, version {:#x}", q.properties.vendorID,
                       q.properties.driverVersion);
  if (q.driver.driverInfo[0] == '\0') return q.driver.driverName;
  return fmt::format("{} ({})", q.driver.driverName, q.driver.driverInfo);
}

void AddLimits(const codegen::Caps& caps, DeviceInfo& info) {
  for (const Field& f : codegen::Caps::kFields)
    if (f.kind == FieldKind::kInt)
      info.limits.emplace_back(f.name,
                               std::to_string(*static_cast<const int64_t*>(f.at_const(&caps))));
}

// Says of each tried feature how it was tried. `test` is null before the first time.
void Note(const SelfTest* test, std::vector<Feature>& features) {
  for (Feature& f : features) {
    if (!f.present || !IsTried(f.name)) continue;
    if (test == nullptr)
      f.note = "not tried yet";
    else
      f.note = test->Knows(f.name) ? "self-test passed" : "not tried: this device computes nothing";
  }
}

// Would a device opened with all of `granted` use one of the `late`, or choose kernels by it?
bool Misses(const Granted& granted, const Failures& late) {
  return late.contains(kRatesProbe) ||
         std::any_of(granted.list.begin(), granted.list.end(),
                     [&](const Feature& f) { return f.present && late.contains(f.name); });
}

DeviceInfo Nothing(const absl::Status& why) {
  DeviceInfo info;
  info.id = info.backend = "vulkan";
  info.name = "no Vulkan device";
  info.usable = Verdict::No(std::string(Message(why)));
  return info;
}

// What a device is, in words. `granted` is null where it is not usable.
DeviceInfo Describe(const Queries& q, size_t index, const Granted* granted) {
  DeviceInfo info;
  info.id = fmt::format("vulkan:{}", index);
  info.name = q.properties.deviceName;
  info.backend = "vulkan";
  info.driver = DriverText(q);
  info.api = Version(q.properties.apiVersion);
  if (const auto heap = DeviceHeap(q.memory)) info.memory_bytes = q.memory.memoryHeaps[*heap].size;
  info.usable = Usable(q);
  info.is_cpu = q.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  if (granted == nullptr) return info;
  info.features = granted->list;
  AddLimits(granted->caps, info);
  info.limits.emplace_back("max_allocation_bytes",
                           std::to_string(q.allocation.maxMemoryAllocationSize));
  info.limits.emplace_back("max_allocations",
                           std::to_string(q.properties.limits.maxMemoryAllocationCount));
  const Rates rates = granted->rates.value_or(AssumedRates(q.properties.deviceType));
  const char* known = granted->rates ? "measured" : "assumed";
  info.limits.emplace_back(fmt::format("{}_flops", known), fmt::format("{:.3g}", rates.flops));
  info.limits.emplace_back(fmt::format("{}_copied_bytes", known),
                           fmt::format("{:.3g}", rates.bytes));
  return info;
}

}  // namespace

absl::StatusOr<const VulkanDriver::Loaded*> VulkanDriver::Load() {
  std::lock_guard lock(mutex_);
  if (!loaded_) {
    loaded_ = [&]() -> absl::StatusOr<Loaded> {
      Loaded l;
      FORGE_ASSIGN_OR_RETURN(l.settings, Settings::FromEnvironment());
      FORGE_ASSIGN_OR_RETURN(l.instance, Instance::Create(l.settings.validate));
      FORGE_ASSIGN_OR_RETURN(const std::vector<VkPhysicalDevice> devices, l.instance->Devices());
      if (devices.empty())
        return Unavailable(
            "the Vulkan loader found no device; install the driver of your GPU, or "
            "Mesa's (mesa-vulkan-drivers), which also runs on the CPU");
      for (VkPhysicalDevice d : devices) l.devices.push_back(Query(*l.instance, d));
      return l;
    }();
  }
  if (!loaded_->ok()) return loaded_->status();
  return &**loaded_;
}

absl::StatusOr<const Queries*> VulkanDriver::Find(const Loaded& loaded, size_t index) {
  if (index >= loaded.devices.size())
    return Unavailable("there is no Vulkan device {}; {} found", index, loaded.devices.size());
  const Queries& q = loaded.devices[index];
  if (const Verdict usable = Usable(q); !usable)
    return Unavailable("{} cannot be used: {}", q.properties.deviceName, usable.text());
  return &q;
}

absl::Status VulkanDriver::TryFeatures(size_t index, std::span<const std::string> known,
                                       Tell tell) {
  FORGE_ASSIGN_OR_RETURN(const Loaded* loaded, Load());
  FORGE_ASSIGN_OR_RETURN(const Queries* q, Find(*loaded, index));
  // All that the driver offers: a verdict is kept for runs that hide less than this one.
  Settings all;
  all.validate = loaded->settings.validate;
  const Granted granted = Grant(*q, all, {});
  FORGE_ASSIGN_OR_RETURN(ContextRef context, Context::Create(loaded->instance, *q, granted, all));
  FORGE_ASSIGN_OR_RETURN(
      const auto device,
      VulkanDevice::Open(context, Describe(*q, index, &granted), {.threads = 1, .cache = false}));
  return RunSelfTest(*device, known, tell);
}

absl::StatusOr<SelfTest> VulkanDriver::Try(const Loaded& loaded, size_t index, bool cache) {
  std::lock_guard lock(mutex_);
  if (const auto known = tried_.find(index); known != tried_.end()) return known->second;
  const Queries& q = loaded.devices[index];
  std::optional<SelfTest> test = ReadSelfTest(q);
  if (!test || Misses(Grant(q, loaded.settings, {}), test->late)) {
    FORGE_ASSIGN_OR_RETURN(
        test, TryInChild(q, {index, kSelfTestPatience, std::move(test).value_or(SelfTest{})}));
    // What cannot be kept is tried again the next time, and so is all where nothing passed: what is
    // wrong then is rather the installation.
    if (cache && (!test->passed.empty() || test->failed.empty()))
      WriteSelfTest(q, *test).IgnoreError();
  }
  tried_[index] = *test;
  return *std::move(test);
}

std::vector<DeviceInfo> VulkanDriver::List() {
  const absl::StatusOr<const Loaded*> loaded = Load();
  if (!loaded.ok()) return {Nothing(loaded.status())};
  std::vector<DeviceInfo> all;
  for (const Queries& q : (*loaded)->devices) {
    if (!Usable(q)) {
      all.push_back(Describe(q, all.size(), nullptr));
      continue;
    }
    const std::optional<SelfTest> test = ReadSelfTest(q);
    Granted granted = Grant(q, (*loaded)->settings, test ? test->Faults() : Failures{});
    if (test) granted.Take(test->rates, (*loaded)->settings);
    Note(test ? &*test : nullptr, granted.list);
    all.push_back(Describe(q, all.size(), &granted));
  }
  return all;
}

absl::StatusOr<DeviceRef> VulkanDriver::Open(size_t index, const DeviceOptions& options) {
  FORGE_ASSIGN_OR_RETURN(const Loaded* loaded, Load());
  FORGE_ASSIGN_OR_RETURN(const Queries* q, Find(*loaded, index));
  FORGE_ASSIGN_OR_RETURN(const SelfTest test, Try(*loaded, index, options.cache));
  Granted granted = Grant(*q, loaded->settings, test.Faults());
  granted.Take(test.rates, loaded->settings);
  Note(&test, granted.list);
  FORGE_ASSIGN_OR_RETURN(ContextRef context,
                         Context::Create(loaded->instance, *q, granted, loaded->settings));
  return VulkanDevice::Open(context, Describe(*q, index, &granted), options);
}

}  // namespace forge::vk
