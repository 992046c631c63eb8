// SPDX-License-Identifier: Apache-2.0
// Probes: small kernels that test one feature each, and the expected results, computed on the host.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel/kernel_ir.h"

namespace forge::vk {

inline constexpr uint32_t kProbeLanes = 64;  // invocations of a probe, which is one workgroup
using ProbeWords = std::array<uint32_t, kProbeLanes>;

// The inputs and results of a probe, one word for each invocation.
struct ProbeRun {
  ProbeWords a, b;                 // inputs: operand 0
  ProbeWords lane, subgroup, out;  // subgroup invocation, subgroup and result: operand 1
};

ProbeWords SmallNumbers(bool second);

// A test of one feature.
struct Probe {
  const char* feature = nullptr;  // a row of the table in features.cc
  // Emits the tested code from u32 inputs to a u32 result; returns an empty value when it has
  // stored the result itself.
  codegen::Val (*emit)(codegen::Builder& b, codegen::Val x, codegen::Val y) = nullptr;
  uint32_t (*expect)(uint32_t x, uint32_t y) = nullptr;
  // Replaces `expect` where the kernel reads its position; `mates` are the invocations of its
  // subgroup.
  uint32_t (*expect_among)(const ProbeRun& r, const std::vector<uint32_t>& mates,
                           uint32_t i) = nullptr;
  ProbeWords (*input)(bool second) = SmallNumbers;
  // With a size: the probe multiplies such matrices and `emit` is not used.
  codegen::MatrixShape matrix = {};
  bool by_elements = false;  // and stores them one element at a time
};

// The probe without a feature: tests that the device computes at all.
const Probe& PlainProbe();
std::span<const Probe> Probes();
Probe MatrixProbe(const codegen::MatrixShape& shape, bool by_elements = false);
codegen::Kernel KernelOf(const Probe& p, const codegen::Caps& caps);
// Returns the error in the result; empty when it is correct.
std::string Judge(const Probe& p, const ProbeRun& r);

}  // namespace forge::vk
