// SPDX-License-Identifier: Apache-2.0
// Every SPIR-V module that a test comes across must be valid.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "runtime/device/device.h"

namespace forge {

// Of SPIR-V, by number.
inline constexpr uint32_t kFloat64Capability = 10, kDotProductCapability = 6019,
                          kCooperativeMatrixCapability = 6022, kMatrixElementsCapability = 5432;
bool DeclaresCapability(std::span<const uint32_t> words, uint32_t capability);

// What SPIRV-Tools finds wrong with a module for Vulkan 1.1; empty: nothing, or the module uses
// what this version of it does not know.
std::string SpirvErrors(std::span<const uint32_t> words);
// The same for all modules among a program's artifacts.
std::string SpirvErrors(const Program& program);

// What `check` finds wrong with the modules among a program's artifacts, each with its name.
std::string ModuleErrors(const Program& program,
                         absl::FunctionRef<std::string(std::span<const uint32_t>)> check);

}  // namespace forge
