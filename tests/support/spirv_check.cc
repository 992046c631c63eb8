// SPDX-License-Identifier: Apache-2.0
#include "tests/support/spirv_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <spirv-tools/libspirv.hpp>

namespace forge {
namespace {

constexpr uint32_t kCapability = 2u << 16 | 17, kCooperativeMatrix = 6022;

// Validators of before 2023 do not know cooperative matrices.
bool IsBeyondValidator(const spvtools::SpirvTools& tools, std::span<const uint32_t> words) {
  constexpr uint32_t kPair[] = {kCapability, kCooperativeMatrix};
  std::vector<uint32_t> ignored;
  return std::search(words.begin(), words.end(), kPair, kPair + 2) != words.end() &&
         !tools.Assemble("OpCapability CooperativeMatrixKHR", &ignored);
}

}  // namespace

std::string SpirvErrors(std::span<const uint32_t> words) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_1);
  if (IsBeyondValidator(tools, words)) return {};
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
