// SPDX-License-Identifier: Apache-2.0
// Running nodes and regions on the CPU device without a Session.
#pragma once
#include <gtest/gtest.h>

#include "cpu_runtime/device.h"
#include "ir/type/host_value.h"

namespace forge::cpu {

// One program on dense host tensors.
struct RunResult {
  std::vector<ir::HostValue> results;
  std::string kernel;
};
struct RunOptions {
  int threads = 2;
  // Applied to operands and results through relayout programs of the same device; empty: dense.
  std::vector<ir::EncodingRef> in = {}, out = {};
};
absl::StatusOr<RunResult> RunOn(const ir::AnyOp& op, std::span<const ir::HostValue* const> in,
                                const RunOptions& options = {});

// The device opened as users open it.
std::shared_ptr<CpuDevice> OpenCpu(int threads = 2);

}  // namespace forge::cpu
