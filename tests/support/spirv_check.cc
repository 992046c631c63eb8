// SPDX-License-Identifier: Apache-2.0
#include "tests/support/spirv_check.h"

#include <fmt/format.h>

#include <cstring>
#include <spirv-tools/libspirv.hpp>

namespace forge {

std::string SpirvErrors(std::span<const uint32_t> words) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_1);
  std::string errors;
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char*, const spv_position_t& at, const char* text) {
        errors += fmt::format("word {}: {}\n", at.index, text);
      });
  if (!tools.Validate(words.data(), words.size()) && errors.empty()) errors = "it is invalid";
  return errors;
}

std::string SpirvErrors(const Program& program) {
  std::string errors;
  for (const Artifact& a : program.artifacts()) {
    if (!a.name.ends_with(".spv")) continue;
    std::vector<uint32_t> words(a.content.size() / sizeof(uint32_t));
    std::memcpy(words.data(), a.content.data(), words.size() * sizeof(uint32_t));
    if (const std::string wrong = SpirvErrors(words); !wrong.empty())
      errors += a.name + ": " + wrong;
  }
  return errors;
}

}  // namespace forge
