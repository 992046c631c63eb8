// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/api/instance.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace forge::vk {
namespace {

constexpr char kValidationLayer[] = "VK_LAYER_KHRONOS_validation";
constexpr size_t kMaxMessages = 64;

bool LoadLoader() {
  static const bool loaded = volkInitialize() == VK_SUCCESS;
  return loaded;
}

bool HasLayer(const char* name) {
  std::vector<VkLayerProperties> layers;
  Enumerate(layers, {}, vkEnumerateInstanceLayerProperties);
  return std::any_of(layers.begin(), layers.end(),
                     [&](const auto& l) { return std::strcmp(l.layerName, name) == 0; });
}

bool Contains(const std::vector<VkExtensionProperties>& all, const char* name) {
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

absl::Status CreateFailure(VkResult r) {
  if (r == VK_ERROR_INCOMPATIBLE_DRIVER)
    return Unavailable(
        "the Vulkan loader found no driver; install the driver of your GPU, or Mesa's "
        "(mesa-vulkan-drivers), which also runs on the CPU");
  return Unavailable("vkCreateInstance failed: {}", ResultName(r));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Instance>> Instance::Create(bool validate) {
  std::shared_ptr<Instance> instance(new Instance);
  FORGE_RETURN_IF_ERROR(instance->Init(validate));
  return instance;
}

absl::Status Instance::Init(bool validate) {
  if (!LoadLoader())
    return Unavailable("no Vulkan loader (libvulkan.so.1) could be opened; install libvulkan1");
  if (volkGetInstanceVersion() < VK_API_VERSION_1_1)
    return Unavailable("the Vulkan loader supports only version 1.0; Forge needs 1.1");
  api_ = std::min<uint32_t>(volkGetInstanceVersion(), VK_API_VERSION_1_3);
  if (validate && !HasLayer(kValidationLayer))
    return Unavailable(
        "FORGE_VK_VALIDATE is set, but {} is not installed (vulkan-validationlayers)",
        kValidationLayer);
  std::vector<VkExtensionProperties> present;
  Enumerate(present, {}, vkEnumerateInstanceExtensionProperties, nullptr);
  const bool debug = validate || Contains(present, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  std::vector<const char*> extensions;
  if (debug) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  if (validate) extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
  VkInstanceCreateFlags flags = 0;
  if (Contains(present, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  FORGE_RETURN_IF_ERROR(Make(validate, flags, extensions));
  debug_utils_ = debug && vkSetDebugUtilsObjectNameEXT != nullptr;
  return validate ? Listen() : absl::OkStatus();
}

absl::Status Instance::Make(bool validate, VkInstanceCreateFlags flags,
                            std::span<const char* const> extensions) {
  auto app = Typed<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  app.pApplicationName = app.pEngineName = "Forge";
  app.apiVersion = api_;
  const VkValidationFeatureEnableEXT checks[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  auto features = Typed<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = checks;
  const char* layers[] = {kValidationLayer};
  auto info = Typed<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pNext = validate ? &features : nullptr;
  info.flags = flags;
  info.pApplicationInfo = &app;
  info.enabledLayerCount = validate ? 1 : 0;
  info.ppEnabledLayerNames = layers;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (VkResult r = vkCreateInstance(&info, nullptr, &handle_); r != VK_SUCCESS)
    return CreateFailure(r);
  // The loader's entry points serve every instance, so the first one loads them for all.
  static std::once_flag once;
  std::call_once(once, [&] { volkLoadInstanceOnly(handle_); });
  return absl::OkStatus();
}

absl::Status Instance::Listen() {
  auto on = Typed<VkDebugUtilsMessengerCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  on.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  on.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                   VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  on.pfnUserCallback = &Instance::OnMessage;
  on.pUserData = this;
  return ToStatus(vkCreateDebugUtilsMessengerEXT(handle_, &on, nullptr, &messenger_),
                  "vkCreateDebugUtilsMessengerEXT");
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) vkDestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
  if (handle_ != VK_NULL_HANDLE) vkDestroyInstance(handle_, nullptr);
}

absl::StatusOr<std::vector<VkPhysicalDevice>> Instance::Devices() const {
  std::vector<VkPhysicalDevice> devices;
  FORGE_RETURN_IF_ERROR(ToStatus(Enumerate(devices, {}, vkEnumeratePhysicalDevices, handle_),
                                 "vkEnumeratePhysicalDevices"));
  return devices;
}

absl::Status Instance::Validation() const {
  std::lock_guard lock(mutex_);
  if (messages_.empty()) return absl::OkStatus();
  return Internal("the validation layers reported {} message{}: {}", messages_.size(),
                  messages_.size() == 1 ? "" : "s", messages_[0]);
}

VkBool32 Instance::OnMessage(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                             VkDebugUtilsMessageTypeFlagsEXT,
                             const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  const bool error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
  std::fprintf(stderr, "vulkan validation %s: %s\n", error ? "error" : "warning", data->pMessage);
  auto* instance = static_cast<Instance*>(self);
  std::lock_guard lock(instance->mutex_);
  if (instance->messages_.size() < kMaxMessages) instance->messages_.emplace_back(data->pMessage);
  return VK_FALSE;
}

}  // namespace forge::vk
