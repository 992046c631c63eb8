// SPDX-License-Identifier: Apache-2.0
// Kernels stay within what Metal can say, so that they run where Vulkan is a layer over it.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/device/device.h"

namespace forge {

// Why SPIRV-Cross cannot turn a module into Metal's language; empty: it can, or the module uses
// what only Vulkan has (binary64, dot products of bytes, cooperative matrices).
std::string MetalErrors(std::span<const uint32_t> words);
// The same for all modules among a program's artifacts.
std::string MetalErrors(const Program& program);

}  // namespace forge
