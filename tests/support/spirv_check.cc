// SPDX-License-Identifier: Apache-2.0
#include "tests/support/spirv_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <spirv-tools/libspirv.hpp>

namespace forge {
namespace {

// Validators of before 2023 do not know cooperative matrices, those of before 2025 their elements.
bool IsBeyondValidator(const spvtools::SpirvTools& tools, std::span<const uint32_t> words) {
  const auto beyond = [&](uint32_t capability, const char* declaration) {
    std::vector<uint32_t> ignored;
    return DeclaresCapability(words, capability) && !tools.Assemble(declaration, &ignored);
  };
  return beyond(kCooperativeMatrixCapability, "OpCapability CooperativeMatrixKHR") ||
         beyond(kMatrixElementsCapability, "OpCapability CooperativeMatrixPerElementOperationsNV");
}

}  // namespace

bool DeclaresCapability(std::span<const uint32_t> words, uint32_t capability) {
  constexpr uint32_t kOpCapability = 2u << 16 | 17;
  const uint32_t pair[] = {kOpCapability, capability};
  return std::search(words.begin(), words.end(), pair, pair + 2) != words.end();
}

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
  return ModuleErrors(program, [](std::span<const uint32_t> words) { return SpirvErrors(words); });
}

std::string ModuleErrors(const Program& program,
                         absl::FunctionRef<std::string(std::span<const uint32_t>)> check) {
  std::string errors;
  for (const Artifact& a : program.artifacts()) {
    if (!a.name.ends_with(".spv")) continue;
    std::vector<uint32_t> words(a.content.size() / sizeof(uint32_t));
    std::memcpy(words.data(), a.content.data(), words.size() * sizeof(uint32_t));
    if (const std::string wrong = check(words); !wrong.empty())
      errors += a.name + ": " + wrong + "\n";
  }
  return errors;
}

}  // namespace forge
