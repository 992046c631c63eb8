// SPDX-License-Identifier: Apache-2.0
// The one symbol that libforge_vulkan.so is opened for.
#include "vk_runtime/driver.h"

extern "C" __attribute__((visibility("default"))) const forge::Plugin* forge_plugin() {
  // Never destroyed: at exit the libraries it would call may already be gone.
  static auto* const driver = new forge::vk::VulkanDriver;
  static const forge::Plugin plugin = {.abi = forge::kPluginAbi,
                                       .backend = "vulkan",
                                       .driver = +[]() -> forge::Driver* { return driver; }};
  return &plugin;
}
