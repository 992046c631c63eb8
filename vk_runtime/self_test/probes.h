// SPDX-License-Identifier: Apache-2.0
// Small kernels that each try one feature, and what the host computes in their place.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel/kernel_ir.h"

namespace forge::vk {

inline constexpr uint32_t kProbeLanes = 64;  // invocations of a probe: one workgroup
using ProbeWords = std::array<uint32_t, kProbeLanes>;

// What a probe's kernel is given and left, one word for each invocation.
struct ProbeRun {
  ProbeWords a, b;                 // inputs: operand 0
  ProbeWords lane, subgroup, out;  // where the invocation stood, and its result: operand 1
};

ProbeWords SmallNumbers(bool second);

struct Probe {
  const char* feature = nullptr;  // a row of features.cc
  // u32 to u32; empty when it has stored the result itself
  codegen::Val (*emit)(codegen::Builder& b, codegen::Val x, codegen::Val y) = nullptr;
  uint32_t (*expect)(uint32_t x, uint32_t y) = nullptr;
  // In place of `expect`, where the kernel may ask where it stands: `mates` are its subgroup.
  uint32_t (*expect_among)(const ProbeRun& r, const std::vector<uint32_t>& mates,
                           uint32_t i) = nullptr;
  ProbeWords (*input)(bool second) = SmallNumbers;
  codegen::MatrixShape matrix = {};  // with a size: multiplies such matrices, in place of `emit`
  bool by_elements = false;          // and stores them one element after the other
};

// Tries nothing but that the device computes.
const Probe& PlainProbe();
std::span<const Probe> Probes();
Probe MatrixProbe(const codegen::MatrixShape& shape, bool by_elements = false);
codegen::Kernel KernelOf(const Probe& p, const codegen::Caps& caps);
// What is wrong with the result; empty: nothing.
std::string Judge(const Probe& p, const ProbeRun& r);

}  // namespace forge::vk
