// SPDX-License-Identifier: Apache-2.0
// The variables that put tests/lab/fault_injection_layer.cc below every Vulkan device.
#pragma once
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace forge::testing {

// Lies about a part of a feature, whose name theirs begins with.
inline constexpr const char* kLiesAboutParts[] = {
    "int_dot_unsigned",
    "int_dot_mixed",
    "subgroup_arithmetic_f32_sum",
    "subgroup_arithmetic_i32_max",
    "subgroup_arithmetic_i32_min",
    "subgroup_arithmetic_u32_max",
    "subgroup_arithmetic_u32_min",
};

// lie: as FORGE_LIE
inline std::vector<std::pair<std::string, std::string>> FaultInjection(
    const std::string& binary_dir, const std::string& lie) {
  const std::string folder = binary_dir + "/fault_injection_layer";
  const auto before = [](const char* name, const std::string& value) {
    const char* old = std::getenv(name);
    return old != nullptr && *old != '\0' ? std::string(old) + ":" + value : value;
  };
  // The loader reads no added path where the path itself is given.
  const char* path =
      std::getenv("VK_LAYER_PATH") != nullptr ? "VK_LAYER_PATH" : "VK_ADD_LAYER_PATH";
  return {{path, before(path, folder)},
          {"VK_INSTANCE_LAYERS", before("VK_INSTANCE_LAYERS", "VK_LAYER_FORGE_fault_injection")},
          {"FORGE_LIE", lie}};
}

}  // namespace forge::testing
