// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/api/context.h"

namespace forge::vk {

absl::StatusOr<ContextRef> Context::Create(std::shared_ptr<Instance> instance, Queries queries,
                                           Granted granted, const Settings& settings) {
  ContextRef c(new Context);
  c->instance_ = std::move(instance);
  c->queries_ = std::move(queries);
  c->granted_ = std::move(granted);
  c->settings_ = settings;
  const std::optional<Rates>& measured = c->granted_.rates;
  c->rates_ = measured ? measured->OfKernels() : AssumedRates(c->queries_.properties.deviceType);
  c->family_ = ComputeFamily(c->queries_).value();
  const float priority = 1.0f;
  auto queue = Typed<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = c->family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  FeatureChain chain;
  FeatureSet want = c->granted_.want;
  Request(c->queries_, want, chain);
  chain.extensions.insert(chain.extensions.end(), c->granted_.extensions.begin(),
                          c->granted_.extensions.end());
  auto info = Typed<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &chain.head;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(chain.extensions.size());
  info.ppEnabledExtensionNames = chain.extensions.data();
  if (VkResult r = vkCreateDevice(c->queries_.device, &info, nullptr, &c->device); r != VK_SUCCESS)
    return Unavailable("{}: vkCreateDevice failed: {}", c->queries_.properties.deviceName,
                       ResultName(r));
  volkLoadDeviceTable(&c->fn, c->device);
  c->fn.vkGetDeviceQueue(c->device, c->family_, 0, &c->queue_);
  return c;
}

Context::~Context() {
  if (device != VK_NULL_HANDLE) fn.vkDestroyDevice(device, nullptr);
}

absl::Status Context::Check(VkResult r, std::string_view call) const {
  absl::Status status = ToStatus(r, call);
  if (r != VK_ERROR_DEVICE_LOST) return status;
  std::lock_guard lock(mutex_);
  if (!lost_.exchange(true)) loss_ = Annotate(status, queries_.properties.deviceName);
  return loss_;
}

absl::Status Context::Health() const {
  if (!lost_.load(std::memory_order_acquire)) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  return loss_;
}

void Context::SetName(VkObjectType type, uint64_t handle, const std::string& name) const {
  if (!instance_->has_debug_utils() || name.empty()) return;
  auto info =
      Typed<VkDebugUtilsObjectNameInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT);
  info.objectType = type;
  info.objectHandle = handle;
  info.pObjectName = name.c_str();
  vkSetDebugUtilsObjectNameEXT(device, &info);
}

}  // namespace forge::vk
