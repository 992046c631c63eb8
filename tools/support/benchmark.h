// SPDX-License-Identifier: Apache-2.0
// Timing of ops, models and the device itself, on the device's own clock where it has one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/cases/case_inputs.h"
#include "runtime/device/device.h"

namespace forge::tools {

struct Peak {
  double fma_gflops = 0, read_gbps = 0, copy_gbps = 0;
  double upload_gbps = 0;  // from the host: read and written, as of copies; MeasurePeak only
};

// What the device reaches in Forge's own kernels, at one moment: other work on a machine moves it,
// so what is compared with it is timed in turns with it.
class Yardstick {
 public:
  static absl::StatusOr<Yardstick> Create(const DeviceRef& device);
  // Runs each form once. FMA: the better of multiply-add chains in registers and a large product;
  // read: the better of sums of few long rows and of many; copy: of a tensor. Those are far larger
  // than caches.
  absl::StatusOr<Peak> Measure();

 private:
  struct Form;
  std::vector<std::shared_ptr<Form>> fma_, read_, copy_;
};

// Medians of 7 measurements.
absl::StatusOr<Peak> MeasurePeak(const DeviceRef& device);

struct OpTime {
  double seconds = 0;           // median of 7 runs of the op's own steps
  double flops = 0, bytes = 0;  // what the op states, what its operands and results hold
  // Medians of the shares of what the yardstick reached right after each run.
  double of_fma = 0, of_read = 0, of_copy = 0;
};
absl::StatusOr<OpTime> TimeOp(const DeviceRef& device, const ir::ConcreteCase& c,
                              Yardstick& yardstick);

double Median(std::vector<double> values);

}  // namespace forge::tools
