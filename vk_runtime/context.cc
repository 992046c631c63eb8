// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/context.h"

namespace forge::vk {

absl::StatusOr<ContextRef> Context::Create(std::shared_ptr<Instance> instance, Queries queries,
                                           Granted granted, const Settings& settings) {
  ContextRef context(
      new Context(std::move(instance), std::move(queries), std::move(granted), settings));
  FORGE_RETURN_IF_ERROR(context->Init());
  return context;
}

Context::Context(std::shared_ptr<Instance> instance, Queries queries, Granted granted,
                 const Settings& settings)
    : instance_(std::move(instance)),
      queries_(std::move(queries)),
      granted_(std::move(granted)),
      settings_(settings),
      rates_(Rates::Of(queries_.properties.deviceType)),
      family_(ComputeFamily(queries_)) {}

absl::Status Context::Init() {
  const float priority = 1.0f;
  auto queue = Typed<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  FeatureChain chain;
  FeatureSet want = granted_.want;
  Request(queries_, want, chain);
  chain.extensions.insert(chain.extensions.end(), granted_.extensions.begin(),
                          granted_.extensions.end());
  auto info = Typed<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &chain.head;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(chain.extensions.size());
  info.ppEnabledExtensionNames = chain.extensions.data();
  if (VkResult r = vkCreateDevice(queries_.device, &info, nullptr, &device); r != VK_SUCCESS)
    return Unavailable("{}: vkCreateDevice failed: {}", queries_.properties.deviceName,
                       ResultName(r));
  volkLoadDeviceTable(&fn, device);
  fn.vkGetDeviceQueue(device, family_, 0, &queue_);
  return absl::OkStatus();
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

void Context::SetNameOf(VkObjectType type, uint64_t handle, const std::string& name) const {
  if (!instance_->has_debug_utils() || name.empty()) return;
  auto info =
      Typed<VkDebugUtilsObjectNameInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT);
  info.objectType = type;
  info.objectHandle = handle;
  info.pObjectName = name.c_str();
  vkSetDebugUtilsObjectNameEXT(device, &info);
}

}  // namespace forge::vk
