// SPDX-License-Identifier: Apache-2.0
// Timing of ops, models and the device itself, on the device's own clock where it has one.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/ops/case_inputs.h"
#include "runtime/device.h"

namespace forge::tools {

struct Peak {
  double fma_gflops = 0, read_gbps = 0, copy_gbps = 0;
};

// What the device reaches in Forge's own kernels: the better of multiply-add chains in registers
// and a large product; a sum over and a copy of tensors far larger than caches.
absl::StatusOr<Peak> MeasurePeak(const DeviceRef& device);

struct OpTime {
  double seconds = 0;           // median of 7 runs of the op's own steps
  double flops = 0, bytes = 0;  // what the op states, what its operands and results hold
};
absl::StatusOr<OpTime> TimeOp(const DeviceRef& device, const ir::ConcreteCase& c);

double Median(std::vector<double> values);

}  // namespace forge::tools
